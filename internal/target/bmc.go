package target

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/braggdev/bragg/internal/diag"
)

// Protocols of BMCs.
const (
	IPMI    = "ipmi"
	Redfish = "redfish"
)

// How the TLS of a Redfish service is checked.
const (
	TLSVerified   = "verified"   // by a known authority, by CAFile, or by Fingerprint
	TLSUnverified = "unverified" // not verified: reports say so
	TLSNone       = "none"       // no TLS, so that passwords can be read on the network: reports say so
)

// BMC defines how a node is switched out of band. Package bmc implements it.
type BMC struct {
	Protocol   string `json:"protocol"` // IPMI or Redfish
	Address    string `json:"address"`  // host or host:port
	Credential string `json:"credential,omitempty"`
	// CipherSuite of IPMI; 0 lets ipmitool select the best that the BMC offers.
	CipherSuite int `json:"cipher_suite,omitempty"`
	// System is the id of the node among the systems of a Redfish service; "" if it has only one.
	System string `json:"system,omitempty"`
	// TLS of Redfish: TLSVerified, TLSUnverified or TLSNone; "" is TLSVerified.
	TLS string `json:"tls,omitempty"`
	// Fingerprint is the SHA-256 of the only accepted certificate of a Redfish service, in lower-case hex.
	Fingerprint string `json:"fingerprint,omitempty"`
	CAFile      string `json:"ca_file,omitempty"` // PEM of the authority that signed it
	// Pos is the place of the BMC in the target file, and Source its line, for messages.
	Pos    diag.Position `json:"-"`
	Source string        `json:"-"`
}

// Checks before a power cut that the owner of a target may override by name in its file.
const (
	OverrideIdentity   = "identity" // that the BMC belongs to the node
	OverrideForeignVMs = "foreign-vms"
	OverrideController = "controller" // that the controller does not run on the node
	OverrideRedundancy = "redundancy" // that the target has recovered from earlier failures
)

// Overrides lists all of them.
func Overrides() []string {
	return []string{OverrideIdentity, OverrideForeignVMs, OverrideController, OverrideRedundancy}
}

// cipherSuites of IPMI that authenticate, protect and encrypt every command. With others, any party on the network could
// switch nodes.
var cipherSuites = []int{3, 8, 12, 17}

// bmcKeysOf are keys of a BMC that only one protocol uses.
var bmcKeysOf = map[string][]string{
	IPMI:    {"cipher_suite"},
	Redfish: {"system", "tls", "fingerprint", "ca_file"},
}

func (p *configParser) bmc(outer entry) *BMC {
	b := &BMC{Protocol: Redfish, Pos: p.at(outer.key, "", "", "").Pos, Source: p.line(outer.key.Line)}
	entries := p.record(outer, "bmc", p.bmcFields(b)...)
	if outer.value.Kind != yaml.MappingNode {
		return b
	}
	for _, e := range entries {
		for protocol, keys := range bmcKeysOf {
			if protocol != b.Protocol && slices.Contains(keys, e.key.Value) && bmcKeysOf[b.Protocol] != nil {
				p.errorf(e.key, "target-bmc", "", "bmc: %q is for protocol %s, and this is %s", e.key.Value, protocol, b.Protocol)
			}
		}
	}
	p.bmcTrust(outer, entries, b)
	return b
}

func (p *configParser) bmcFields(b *BMC) []field {
	return []field{
		{key: "protocol", read: func(e entry) { b.Protocol = p.oneOf(e, "BMC protocol", IPMI, Redfish) }},
		{"address", func(e entry) {
			b.Address = p.text(e)
			if b.Address != "" && !bmcAddress.MatchString(b.Address) {
				p.errorf(e.value, "target-bmc", "write 10.0.1.11, [fd00::11]:443 or bmc.example.com, without https://",
					"address: %q is not a host or host:port", b.Address)
			}
		}, true},
		{key: "credential", read: into(&b.Credential, p.text)},
		{key: "cipher_suite", read: func(e entry) {
			b.CipherSuite = p.number(e, 0, 255)
			if !slices.Contains(cipherSuites, b.CipherSuite) {
				p.errorf(e.value, "target-bmc", "known: 3, 8, 12, 17",
					"cipher_suite: %s does not authenticate, protect and encrypt all commands", p.found(e.value))
			}
		}},
		{key: "system", read: into(&b.System, p.text)},
		{key: "tls", read: func(e entry) { b.TLS = p.oneOf(e, "TLS mode", TLSVerified, TLSUnverified, TLSNone) }},
		{key: "fingerprint", read: into(&b.Fingerprint, p.fingerprint)},
		{key: "ca_file", read: into(&b.CAFile, p.text)},
	}
}

// bmcTrust refuses contradicting options: a pinned certificate must be verified.
func (p *configParser) bmcTrust(outer entry, entries []entry, b *BMC) {
	switch {
	case b.TLS != "" && b.TLS != TLSVerified && (has(entries, "fingerprint") || has(entries, "ca_file")):
		p.errorf(outer.key, "target-bmc", "", "bmc: a fingerprint or ca_file has no effect with tls: %s", b.TLS)
	case has(entries, "fingerprint") && has(entries, "ca_file"):
		p.errorf(outer.key, "target-bmc", "a fingerprint names one certificate, a ca_file all that an authority signs",
			"bmc: want either fingerprint or ca_file")
	}
}

// bmcAddress is a host or host:port. It begins with a letter, a digit or a bracket, so that a program cannot mistake it for
// an option.
var bmcAddress = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]{0,252}(:[0-9]{1,5})?|[0-9A-Fa-f:.]{2,45}|\[[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9._-]{1,15})?\](:[0-9]{1,5})?)$`)

func (p *configParser) oneOf(e entry, what string, words ...string) string {
	text := p.text(e)
	if text != "" && !slices.Contains(words, text) {
		hint := "known: " + strings.Join(words, ", ")
		if near := diag.Nearest(text, words); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		p.errorf(e.value, "target-unknown-value", hint, "unknown %s %q", what, text)
	}
	return text
}

// fingerprint reads a SHA-256 in the formats of openssl and browsers.
func (p *configParser) fingerprint(e entry) string {
	text := p.text(e)
	if text == "" {
		return ""
	}
	parts := fingerprintText.FindStringSubmatch(text)
	if parts == nil {
		p.errorf(e.value, "target-fingerprint", "openssl x509 -noout -fingerprint -sha256 prints it; so does bragg targets check",
			"fingerprint: want the SHA-256 of a certificate as 64 hex digits")
		return ""
	}
	return strings.ToLower(strings.ReplaceAll(parts[1], ":", ""))
}

var fingerprintText = regexp.MustCompile(`^(?:[sS][hH][aA]256:)?((?:[0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2})$`)

var uuidText = regexp.MustCompile(`^[0-9A-Fa-f]{8}-?([0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}$`)

func (p *configParser) uuid(e entry) string {
	text := p.text(e)
	if text != "" && !uuidText.MatchString(text) {
		p.errorf(e.value, "target-uuid", "dmidecode -s system-uuid prints it", "uuid: %q is not a UUID", text)
	}
	return text
}

func (p *configParser) allow(outer entry, c *Config) {
	switches := map[string]*bool{
		"node_power": &c.Allow.NodePower, "maintenance": &c.Allow.Maintenance, "cvms": &c.Allow.CVMs,
		"container_settings": &c.Allow.ContainerSettings,
	}
	known := append(slices.Sorted(maps.Keys(switches)), "overrides")
	for _, e := range p.entries(outer.value, "allow", known) {
		if allowed, ok := switches[e.key.Value]; ok {
			*allowed = p.boolean(e)
			continue
		}
		if e.value.Kind != yaml.SequenceNode {
			p.errorf(e.value, "target-type", "", "overrides: want a list of checks, found %s", p.found(e.value))
			continue
		}
		for _, n := range e.value.Content {
			c.Allow.Overrides = append(c.Allow.Overrides, p.oneOf(entry{e.key, n}, "check", Overrides()...))
		}
	}
}
