package target

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Kinds of sources. The first four are Prometheus exporters, the others are read by this program itself.
const (
	SourcePrometheus = "prometheus"
	SourceCeph       = "ceph"             // the prometheus module of ceph-mgr, or ceph-exporter
	SourceNode       = "node_exporter"    // Linux and macOS
	SourceWindows    = "windows_exporter" // Windows
	SourceNutanix    = "nutanix"
	SourceNetApp     = "netapp"
	SourceVSphere    = "vsphere"
)

// SourceKinds lists all of them.
func SourceKinds() []string {
	return []string{SourcePrometheus, SourceCeph, SourceNode, SourceWindows, SourceNutanix, SourceNetApp, SourceVSphere}
}

// exporterKinds are the kinds that a URL of an exporter belongs to.
var exporterKinds = SourceKinds()[:4]

// Source is a place that counts what the storage did during a run: an exporter, or the management of a storage system. Package collect
// reads them. A source is read and never changed.
type Source struct {
	Name string `json:"name"` // the label source of its samples
	Kind string `json:"kind"`
	// URL may be empty if the kind is the provider of the target: the source is then its Endpoint.
	URL      string        `json:"url,omitempty"`
	Interval time.Duration `json:"interval_ns,omitempty"` // between two readings; 0: the default of its kind
	// Credential names an entry of Config.Credentials; without a user, its secret is a token.
	Credential  string `json:"credential,omitempty"`
	TLS         string `json:"tls,omitempty"` // TLSVerified, TLSUnverified or, for a credential over http, TLSNone; "" is TLSVerified
	Fingerprint string `json:"fingerprint,omitempty"`
	CAFile      string `json:"ca_file,omitempty"`
	// Node is the id or name of the node that the whole source belongs to.
	Node string `json:"node,omitempty"`
	// NodeLabel and VMLabel are labels of the exporter whose values name nodes and VMs.
	NodeLabel string `json:"node_label,omitempty"`
	VMLabel   string `json:"vm_label,omitempty"`
	// Keep lists the metrics to record; an entry may end with "*". Empty: those of the kind.
	Keep   []string          `json:"keep,omitempty"`
	Rename map[string]string `json:"rename,omitempty"` // name at the exporter → name in the bundle
	// Objects lists volumes, containers, datastores and VMs to read beside those of the run; an entry may end with "*".
	Objects []string `json:"objects,omitempty"`
	// Params are parameters of the URL of an exporter; they are not secret.
	Params url.Values    `json:"params,omitempty"`
	Charts []SourceChart `json:"charts,omitempty"`
}

// Resolved returns a source with its address. A source without one is the platform itself: it has the endpoint of the target, its trust and its
// credential.
func (c *Config) Resolved(s Source) Source {
	if s.URL != "" || s.Kind != c.Provider {
		return s
	}
	s.URL, s.TLS, s.Fingerprint, s.CAFile = c.Endpoint, c.TLS, c.Fingerprint, c.CAFile
	if !strings.Contains(s.URL, "://") {
		s.URL = "https://" + s.URL
	}
	if u, err := url.Parse(s.URL); err == nil && s.Kind == SourceNutanix && u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), prismPort)
		s.URL = u.String()
	}
	for _, name := range []string{"platform", "api_key"} {
		if _, ok := c.Credentials[name]; ok && s.Credential == "" {
			s.Credential = name
		}
	}
	return s
}

// prismPort is that of Prism.
const prismPort = "9440"

// IsExporter reports whether the source serves Prometheus' text format.
func (s Source) IsExporter() bool { return slices.Contains(exporterKinds, s.Kind) }

// Bounds of sources.
const (
	sourcesMax         = 64
	sourceNamesMax     = 256 // entries of keep, rename and objects
	sourceIntervalMin  = time.Second
	sourceIntervalMax  = time.Hour
	sourceMetricPrefix = "bragg_" // names that no exporter may take
)

var (
	sourceName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
	sourceMetric = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]{0,199}$`)
	sourceLabel  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,99}$`)
)

// sourceParser reads the sources of a target file.
type sourceParser struct{ *configParser }

func (p sourceParser) sources(e entry) []Source {
	if e.value.Kind != yaml.SequenceNode {
		p.errorf(e.value, "target-type", "", "sources: want a list, found %s", p.found(e.value))
		return nil
	}
	if len(e.value.Content) > sourcesMax {
		p.errorf(e.value, "target-number", "", "sources: want at most %d", sourcesMax)
		return nil
	}
	var list []Source
	seen := map[string]bool{}
	for _, item := range e.value.Content {
		s := p.source(item)
		if s.Name != "" && seen[s.Name] {
			p.errorf(item, "target-duplicate-source", "", "sources: duplicate name %q", s.Name)
		}
		seen[s.Name] = true
		list = append(list, s)
	}
	return list
}

func (p sourceParser) source(item *yaml.Node) Source {
	var s Source
	entries := p.record(entry{item, item}, "source",
		field{"name", func(e entry) { s.Name = p.matching(e, sourceName, "letters, digits, dots, dashes and underscores") }, true},
		field{"kind", func(e entry) { s.Kind = p.oneOf(e, "kind of source", SourceKinds()...) }, true},
		field{key: "url", read: into(&s.URL, p.serviceURL)},
		field{key: "interval", read: into(&s.Interval, p.sourceInterval)},
		field{key: "credential", read: into(&s.Credential, p.text)},
		field{key: "tls", read: func(e entry) { s.TLS = p.oneOf(e, "TLS mode", TLSVerified, TLSUnverified, TLSNone) }},
		field{key: "fingerprint", read: into(&s.Fingerprint, p.fingerprint)},
		field{key: "ca_file", read: into(&s.CAFile, p.text)},
		field{key: "node", read: into(&s.Node, p.text)},
		field{key: "node_label", read: func(e entry) { s.NodeLabel = p.matching(e, sourceLabel, "the name of a label") }},
		field{key: "vm_label", read: func(e entry) { s.VMLabel = p.matching(e, sourceLabel, "the name of a label") }},
		field{key: "keep", read: func(e entry) { s.Keep = p.patterns(e, sourceMetric) }},
		field{key: "rename", read: into(&s.Rename, p.renames)},
		field{key: "params", read: into(&s.Params, p.params)},
		field{key: "charts", read: into(&s.Charts, p.charts)},
		field{key: "objects", read: func(e entry) { s.Objects = p.patterns(e, nil) }})
	if item.Kind != yaml.MappingNode {
		return s
	}
	p.sourceFits(item, entries, s)
	return s
}

// sourceFits refuses keys that have no effect.
func (p sourceParser) sourceFits(item *yaml.Node, entries []entry, s Source) {
	for _, e := range entries {
		ofExporter := slices.Contains([]string{"node_label", "vm_label", "keep", "rename", "node", "params"}, e.key.Value)
		if s.Kind != "" && (ofExporter && !s.IsExporter() || e.key.Value == "objects" && s.IsExporter()) {
			p.errorf(e.key, "target-source", "", "source: %q has no effect on kind %s", e.key.Value, s.Kind)
		}
	}
	secured := has(entries, "tls") && s.TLS != TLSNone || has(entries, "fingerprint") || has(entries, "ca_file")
	plain := strings.HasPrefix(s.URL, "http://")
	switch {
	case secured && plain:
		p.errorf(item, "target-source", "", "source: tls, fingerprint and ca_file have no effect on http://")
	case s.TLS == TLSNone && !plain:
		p.errorf(item, "target-source", "", "source: tls: none is for http://")
	case s.Credential != "" && plain && s.TLS != TLSNone:
		p.errorf(item, "target-source", "use https://, or write tls: none: reports mention it",
			"source: a credential over http:// can be read on the network")
	case s.TLS == TLSUnverified && (has(entries, "fingerprint") || has(entries, "ca_file")):
		p.errorf(item, "target-source", "", "source: a fingerprint or ca_file has no effect with tls: %s", s.TLS)
	case has(entries, "fingerprint") && has(entries, "ca_file"):
		p.errorf(item, "target-source", "a fingerprint names one certificate, a ca_file all that an authority signs",
			"source: want either fingerprint or ca_file")
	case has(entries, "node") && has(entries, "node_label"):
		p.errorf(item, "target-source", "", "source: want either node or node_label")
	}
}

// matching reads a text of a form.
func (p sourceParser) matching(e entry, form *regexp.Regexp, want string) string {
	text := p.text(e)
	if text != "" && !form.MatchString(text) {
		p.errorf(e.value, "target-source", "", "%s: want %s, found %s", e.key.Value, want, p.found(e.value))
		return ""
	}
	return text
}

// serviceURL reads the address of a service, without a password: that belongs in credentials.
func (p sourceParser) serviceURL(e entry) string {
	text := p.text(e)
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case strings.Contains(text, "@") || err == nil && (u.RawQuery != "" || u.Fragment != ""):
		defer func(before bool) { p.private = before }(p.private)
		p.private = true // neither the text nor its line is shown
		p.errorf(e.value, "target-source", "users and tokens belong in credentials, parameters in params", "url: want no user, query or fragment")
		return ""
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		p.errorf(e.value, "target-source", "", "url: want an address such as https://10.0.0.5:9283/metrics, found %s", p.found(e.value))
		return ""
	}
	return text
}

func (p sourceParser) sourceInterval(e entry) time.Duration {
	d, err := time.ParseDuration(p.text(e))
	if err != nil || d < sourceIntervalMin || d > sourceIntervalMax {
		p.errorf(e.value, "target-source", "", "interval: want a duration from 1s to 1h such as 10s, found %s", p.found(e.value))
		return 0
	}
	return d
}

// patterns reads a list of names that may end with "*".
func (p sourceParser) patterns(e entry, form *regexp.Regexp) []string {
	if e.value.Kind != yaml.SequenceNode || len(e.value.Content) == 0 || len(e.value.Content) > sourceNamesMax {
		p.errorf(e.value, "target-type", "", "%s: want a list of 1 to %d names, found %s", e.key.Value, sourceNamesMax, p.found(e.value))
		return nil
	}
	var list []string
	for _, n := range e.value.Content {
		text := p.text(entry{e.key, n})
		name := strings.TrimSuffix(text, "*")
		if text != "" && (strings.Contains(name, "*") || form != nil && name != "" && !form.MatchString(name)) {
			p.errorf(n, "target-source", `such as ceph_osd_op_r, or ceph_osd_* for all names that begin so`,
				"%s: %q is not a name, with * at its end at most", e.key.Value, text)
			continue
		}
		list = append(list, text)
	}
	return list
}

func (p sourceParser) renames(e entry) map[string]string {
	entries := p.entries(e.value, "rename", nil)
	if len(entries) > sourceNamesMax {
		p.errorf(e.value, "target-number", "", "rename: more than %d entries", sourceNamesMax)
		return nil
	}
	out := map[string]string{}
	for _, inner := range entries {
		to := p.matching(inner, sourceMetric, "the name of a metric")
		if strings.HasPrefix(to, sourceMetricPrefix) {
			p.errorf(inner.value, "target-source", "", "rename: names that begin with %q are those of Bragg", sourceMetricPrefix)
		}
		out[inner.key.Value] = to
	}
	return out
}

// sourceEntries are the keys of a source.
func sourceEntries(item *yaml.Node) []entry {
	var all []entry
	for i := 0; item.Kind == yaml.MappingNode && i+1 < len(item.Content); i += 2 {
		all = append(all, entry{item.Content[i], item.Content[i+1]})
	}
	return all
}

// checkSources reports sources that refer to what the file does not have.
func (p sourceParser) checkSources(e entry, c *Config) {
	for i, s := range c.Sources {
		item := e.value.Content[i]
		entries := sourceEntries(item)
		switch own := s.Kind == c.Provider && c.Endpoint != ""; {
		case has(entries, "url"):
		case !own:
			p.errorf(item, "target-missing-key", "", `source: key "url" is missing`)
		case slices.ContainsFunc([]string{"credential", "tls", "fingerprint", "ca_file"}, func(key string) bool { return has(entries, key) }):
			p.errorf(item, "target-source", "", "source %q: credential, tls, fingerprint and ca_file need a url: without one they are those of the target", s.Name)
		}
		if _, ok := c.Credentials[s.Credential]; s.Credential != "" && !ok {
			p.errorf(item, "target-credential", "", "source %q: no credential %q in this file", s.Name, s.Credential)
		}
		known := func(n NodeConfig) bool { return n.ID == s.Node || n.Name == s.Node }
		if s.Node != "" && len(c.Nodes) > 0 && !slices.ContainsFunc(c.Nodes, known) {
			p.errorf(item, "target-source", "", "source %q: no node %q in this file", s.Name, s.Node)
		}
	}
}
