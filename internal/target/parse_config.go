package target

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/braggdev/bragg/internal/diag"
)

var configKeys = []string{
	"provider", "name", "nodes", "endpoint", "tls", "fingerprint", "ca_file", "templates", "pool", "replication_factor", "network", "addresses", "credentials", "facts",
	"simulates", "health", "sources", "allow", "options",
}

// replicationMax bounds the number of copies of each byte.
const replicationMax = 16

func (p *configParser) config(root *yaml.Node, c *Config, providers []Provider) {
	if root.Kind != yaml.MappingNode {
		p.errorf(root, "target-type", "", "target file: want keys with values, found %s", p.found(root))
		return
	}
	places := map[string]entry{}
	for _, e := range p.entries(root, "target file", configKeys) {
		places[e.key.Value] = e
	}
	provider := p.provider(root, places, c, providers)
	c.Allow.NodePower, c.Allow.Maintenance = provider.MakesNodes, provider.MakesNodes
	for _, key := range configKeys {
		if e, ok := places[key]; ok {
			p.field(e, c, provider)
		}
	}
	checkEndpointTrust(p, places, c)
	if _, listed := places["nodes"]; !listed && provider.Name != "" && !provider.MakesNodes && !provider.FindsNodes {
		p.errorf(root, "target-missing-key", "", `target file: key "nodes" is missing`)
	}
	for i, n := range c.Nodes {
		if n.BMC == nil || n.BMC.Credential == "" {
			continue
		}
		if _, ok := c.Credentials[n.BMC.Credential]; !ok {
			p.errorf(places["nodes"].value.Content[i], "target-credential", "", "node %q: no credential %q in this file", n.ID,
				n.BMC.Credential)
		}
	}
	sourceParser{p}.checkSources(places["sources"], c)
}

func (p *configParser) provider(root *yaml.Node, places map[string]entry, c *Config, providers []Provider) Provider {
	var names []string
	for _, known := range providers {
		names = append(names, known.Name)
	}
	known := "known: " + strings.Join(names, ", ")
	e, ok := places["provider"]
	if !ok {
		p.errorf(root, "target-missing-key", known, `target file: key "provider" is missing`)
		return Provider{}
	}
	c.Provider = p.text(e)
	i := slices.Index(names, c.Provider)
	if i < 0 {
		if c.Provider != "" {
			if near := diag.Nearest(c.Provider, names); near != "" {
				known = fmt.Sprintf("did you mean %q?", near)
			}
			p.errorf(e.value, "target-unknown-provider", known, "unknown provider %q", c.Provider)
		}
		return Provider{}
	}
	return providers[i]
}

func (p *configParser) field(e entry, c *Config, provider Provider) {
	switch e.key.Value {
	case "name":
		c.Name = p.text(e)
	case "nodes":
		p.nodes(e, c, provider)
	case "endpoint":
		c.Endpoint = p.text(e)
	case "tls":
		c.TLS = p.oneOf(e, "TLS mode", TLSVerified, TLSUnverified)
	case "fingerprint":
		c.Fingerprint = p.fingerprint(e)
	case "ca_file":
		c.CAFile = p.text(e)
	case "templates":
		c.Templates = map[string]string{}
		for _, f := range p.texts(e) {
			c.Templates[f.Name] = f.Value
		}
	case "pool":
		c.Pool = p.text(e)
	case "replication_factor":
		c.Replication = p.number(e, 1, replicationMax)
	case "network":
		c.Network = p.text(e)
	case "addresses":
		c.Addresses = p.addresses(e)
	case "credentials":
		p.private = true
		defer func() { p.private = false }()
		c.Credentials = map[string]Credential{}
		for _, inner := range p.entries(e.value, "credentials", nil) {
			c.Credentials[inner.key.Value] = p.credential(inner)
			keepPlace(p, c, "credentials", inner.key)
		}
	case "facts":
		c.Facts = p.texts(e)
	case "simulates":
		c.Simulates = simulates(p, e)
	case "health":
		c.Health = p.health(e)
	case "sources":
		c.Sources = sourceParser{p}.sources(e)
	case "allow":
		p.allow(e, c)
	case "options":
		c.Options = map[string]string{}
		for _, f := range p.texts(e) {
			c.Options[f.Name] = f.Value
		}
		for i := 0; e.value.Kind == yaml.MappingNode && i < len(e.value.Content); i += 2 {
			keepPlace(p, c, "options", e.value.Content[i])
		}
	}
}

// keepPlace keeps where the file has a key that is checked when the target is opened.
func keepPlace(p *configParser, c *Config, outer string, key *yaml.Node) {
	if c.Places == nil {
		c.Places = map[string]diag.Diagnostic{}
	}
	c.Places[outer+"."+key.Value] = p.at(key, "", "", "")
}

// Place returns an error at a key of the file, see Config.Places, or of the whole file.
func (c *Config) Place(key, code, hint, message string) diag.Diagnostic {
	d, ok := c.Places[key]
	if !ok {
		d.Pos.File = c.File
	}
	d.Code, d.Hint, d.Message = code, hint, message
	return d
}

// simulates reads which capabilities the platform only simulates.
func simulates(p *configParser, e entry) map[Capability]string {
	all := map[Capability]string{}
	for _, inner := range p.entries(e.value, e.key.Value, nil) {
		if !slices.Contains(capabilities, Capability(inner.key.Value)) {
			p.errorf(inner.key, "target-capability", `"bragg targets check" lists capabilities`, "simulates: unknown capability %q", inner.key.Value)
		}
		all[Capability(inner.key.Value)] = p.text(inner)
	}
	return all
}

// checkEndpointTrust refuses contradictions in how the endpoint's certificate is checked.
func checkEndpointTrust(p *configParser, places map[string]entry, c *Config) {
	for _, key := range []string{"fingerprint", "ca_file"} {
		e, ok := places[key]
		_, other := places["ca_file"]
		switch {
		case !ok:
		case c.TLS == TLSUnverified:
			p.errorf(e.key, "target-endpoint", "", "%s: has no effect with tls: %s", key, c.TLS)
		case key == "fingerprint" && other:
			p.errorf(e.key, "target-endpoint", "a fingerprint names one certificate, a ca_file all that an authority signs",
				"want either fingerprint or ca_file")
		}
	}
}

func (p *configParser) nodes(e entry, c *Config, provider Provider) {
	if e.value.Kind == yaml.ScalarNode {
		if provider.Name != "" && !provider.MakesNodes {
			p.errorf(e.value, "target-nodes", "", "nodes: provider %q needs a list of nodes", provider.Name)
			return
		}
		c.NodeCount = p.number(e, 1, configNodesMax)
		return
	}
	if e.value.Kind != yaml.SequenceNode {
		p.errorf(e.value, "target-type", "", "nodes: want a list or a number, found %s", p.found(e.value))
		return
	}
	switch {
	case provider.MakesNodes:
		p.errorf(e.value, "target-nodes", `write how many: "nodes: 4"`, "nodes: provider %q makes its own", provider.Name)
		return
	case len(e.value.Content) == 0 || len(e.value.Content) > configNodesMax:
		p.errorf(e.value, "target-number", "", "nodes: want 1 to %d", configNodesMax)
		return
	}
	seen := map[string]bool{}
	for _, item := range e.value.Content {
		n := p.node(item)
		if n.ID != "" && seen[n.ID] {
			p.errorf(item, "target-duplicate-node", "", "nodes: duplicate id %q", n.ID)
		}
		seen[n.ID] = true
		c.Nodes = append(c.Nodes, n)
	}
}

func (p *configParser) node(item *yaml.Node) NodeConfig {
	var n NodeConfig
	entries := p.record(entry{item, item}, "node", field{"id", into(&n.ID, p.text), true}, field{key: "name", read: into(&n.Name, p.text)},
		field{key: "address", read: into(&n.Address, p.text)}, field{key: "endpoint", read: into(&n.Endpoint, p.text)},
		field{key: "serial", read: into(&n.Serial, p.text)}, field{key: "uuid", read: into(&n.UUID, p.uuid)},
		field{key: "exporter_port", read: func(e entry) { n.ExporterPort = p.number(e, 1, 65535) }},
		field{key: "bmc", read: into(&n.BMC, p.bmc)})
	for _, e := range entries {
		if e.key.Value == "exporter_port" && !has(entries, "address") {
			p.errorf(e.key, "target-missing-key", "", `node: an exporter_port needs key "address"`)
		}
	}
	return n
}

func has(entries []entry, key string) bool {
	return slices.ContainsFunc(entries, func(e entry) bool { return e.key.Value == key })
}

func (p *configParser) addresses(outer entry) Addresses {
	if outer.value.Kind == yaml.ScalarNode {
		if outer.value.Value != "dhcp" {
			p.errorf(outer.value, "target-address", "", `addresses: want "dhcp" or a range, found %s`, p.found(outer.value))
		}
		return Addresses{DHCP: true}
	}
	var a Addresses
	var first, last, gateway netip.Addr
	p.record(outer, "addresses",
		field{"first", func(e entry) { first, a.First = p.address(e), e.value.Value }, true},
		field{"last", func(e entry) { last, a.Last = p.address(e), e.value.Value }, true},
		field{"prefix", func(e entry) { a.Prefix = p.number(e, 1, 128) }, true},
		field{key: "gateway", read: func(e entry) { gateway, a.Gateway = p.address(e), e.value.Value }})
	switch {
	case !first.IsValid() || !last.IsValid():
	case first.Is4() != last.Is4() || last.Less(first):
		p.errorf(outer.value, "target-address", "", "addresses: %s to %s is not a range", first, last)
	case a.Prefix > first.BitLen():
		p.errorf(outer.value, "target-address", "", "addresses: prefix /%d is longer than an address", a.Prefix)
	case !netip.PrefixFrom(first, a.Prefix).Masked().Contains(last):
		p.errorf(outer.value, "target-address", "", "addresses: %s and %s are not in one network /%d", first, last, a.Prefix)
	case gateway.IsValid() && !netip.PrefixFrom(first, a.Prefix).Masked().Contains(gateway):
		p.errorf(outer.value, "target-address", "", "addresses: gateway %s is not in the network of %s/%d", gateway, first, a.Prefix)
	}
	return a
}

func (p *configParser) credential(outer entry) Credential {
	var c Credential
	p.record(outer, fmt.Sprintf("credential %q", outer.key.Value), field{key: "user", read: into(&c.User, p.text)},
		field{"secret", into(&c.Secret, p.secret), true})
	return c
}

func (p *configParser) secret(outer entry) Secret {
	if outer.value.Kind == yaml.ScalarNode {
		p.errorf(outer.value, "target-secret", `write "secret: {env: NAME}", {file: PATH} or {command: [PROGRAM, ARGUMENT]}`,
			"a target file holds no secrets, only where they are kept")
		return Secret{}
	}
	var s Secret
	entries := p.record(outer, "secret", field{key: "env", read: into(&s.Env, p.text)}, field{key: "file", read: into(&s.File, p.text)},
		field{key: "command", read: into(&s.Command, p.command)})
	if len(entries) != 1 && outer.value.Kind == yaml.MappingNode {
		p.errorf(outer.key, "target-secret", "", "secret: want exactly one of env, file, command")
	}
	return s
}

func (p *configParser) health(outer entry) *Health {
	h := &Health{}
	places := map[string]entry{}
	for _, e := range p.entries(outer.value, "health", []string{"command", "prometheus", "query"}) {
		places[e.key.Value] = e
		switch e.key.Value {
		case "command":
			h.Command = p.command(e)
		case "prometheus":
			h.Prometheus = p.text(e)
			u, err := url.Parse(h.Prometheus)
			switch {
			case err == nil && u.User != nil:
				p.private = true // neither the text nor its line is shown
				p.errorf(e.value, "target-health", "", "prometheus: a target file holds no passwords")
				p.private = false
				return h
			case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "":
				p.errorf(e.value, "target-health", "", "prometheus: want the address of a server, such as http://10.0.0.5:9090")
			}
		case "query":
			h.Query = p.text(e)
		}
	}
	_, program := places["command"]
	_, server := places["prometheus"]
	_, query := places["query"]
	if outer.value.Kind == yaml.MappingNode && (program == server || server != query) {
		p.errorf(outer.key, "target-health", "", "health: want either command, or prometheus with query")
	}
	return h
}

func (p *configParser) command(e entry) []string {
	if e.value.Kind != yaml.SequenceNode || len(e.value.Content) == 0 {
		p.errorf(e.value, "target-secret", "no shell is involved: write each argument as an item of the list",
			"command: want a list of a program and its arguments, found %s", p.found(e.value))
		return nil
	}
	var words []string
	for _, n := range e.value.Content {
		words = append(words, p.text(entry{e.key, n}))
	}
	return words
}
