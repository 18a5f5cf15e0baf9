package result

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
)

// Redactor replaces everything that identifies the measured machines: names of the target and its nodes, labels, network
// addresses, host names, MAC addresses, identifiers and file paths. The same name always becomes the same pseudonym, so that a
// redacted report still distinguishes nodes. Names that come from the scenario (groups, workloads, VMs) stay.
//
// It works on text, so it also covers fields that are added later; it cannot recognize names that occur only in free text.
type Redactor struct {
	names   map[string]string // name → pseudonym
	fields  map[string]string // names that are replaced only if they are the whole value of a field that names a machine
	labels  map[string]string // labels of runs, replaced only in fields of labels
	known   *regexp.Regexp    // matches the learned names, longest first
	keep    map[string]bool
	numbers map[string]int // kind → pseudonyms given
}

var (
	addressPattern = regexp.MustCompile(strings.Join([]string{
		`(?P<uuid>\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b)`,
		`(?P<mac>\b(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}\b)`,
		`(?P<address>\b\d{1,3}(?:\.\d{1,3}){3}\b|(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|` +
			`(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6}|\bfe80::[0-9a-fA-F:]+)`,
		`(?P<url>\b[a-z][a-z0-9+.-]*://[^\s"'<>]+)`,
		`(?P<path>(?:^|[\s"'=(,:])(?:(?:\.\.?|~[\w.-]*)/[^\s"'<>:,;=()/]+|(?:/[^\s"'<>:,;=()/]+){2})(?:/[^\s"'<>:,;=()/]+)*)`,
		`(?P<host>\b(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\.)+(?:local|lan|internal|corp|home|intra|` +
			`com|net|org|io|de|eu|uk)\b)`,
	}, "|"))
)

// Text returns s with pseudonyms.
func (r *Redactor) Text(s string) string {
	if r.known != nil {
		s = r.known.ReplaceAllStringFunc(s, func(name string) string { return r.names[name] })
	}
	groups := addressPattern.SubexpNames()
	return replaceGroups(addressPattern, s, func(group int, found string) string {
		before := ""
		if at := strings.IndexAny(found, "/.~"); groups[group] == "path" && at > 0 {
			before, found = found[:at], found[at:]
		}
		if r.keep[found] || strings.HasPrefix(found, "/dev/") { // devices are named by scenarios
			return before + found
		}
		if r.names[found] == "" {
			r.names[found] = r.pseudonym(groups[group])
		}
		return before + r.names[found]
	})
}

// replaceGroups replaces every match by the result of f for the match and the number of its group.
func replaceGroups(pattern *regexp.Regexp, s string, f func(group int, found string) string) string {
	var out strings.Builder
	last := 0
	for _, m := range pattern.FindAllStringSubmatchIndex(s, -1) {
		out.WriteString(s[last:m[0]])
		group := 0
		for g := 1; g < len(m)/2; g++ {
			if m[2*g] >= 0 {
				group = g
				break
			}
		}
		out.WriteString(f(group, s[m[0]:m[1]]))
		last = m[1]
	}
	out.WriteString(s[last:])
	return out.String()
}

// JSON redacts every string of a JSON text. Names of members stay as they are.
func (r *Redactor) JSON(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	return json.Marshal(r.walk(v, "", ""))
}

// walk redacts the value of key, which is a member of parent; elements of a list have the key of the list.
func (r *Redactor) walk(v any, parent, key string) any {
	switch v := v.(type) {
	case string:
		if namesMachine(parent, key) {
			return r.field(v, r.Text(v))
		}
		return r.Text(v)
	case []any:
		for i := range v {
			v[i] = r.walk(v[i], parent, key)
		}
	case map[string]any:
		for inner, value := range v {
			v[inner] = r.walk(value, key, inner)
		}
	}
	return v
}

// namesMachine reports whether a JSON member holds only the name of a machine.
func namesMachine(parent, key string) bool {
	switch key {
	case "node", "nodes", "node_id", "host", "subject", "subjects":
		return true
	case "name", "id":
		return parent == "target" || parent == "nodes"
	}
	return parent == "environment" && slices.Contains(machineKeys, key)
}

// Manifest returns m with pseudonyms.
func (r *Redactor) Manifest(m Manifest) (Manifest, error) {
	var out Manifest
	if err := r.through(m, &out); err != nil {
		return out, err
	}
	out.Label = r.label(m.Label)
	out.CommandLine = r.commandLine(m.CommandLine)
	return out, nil
}

// Summary returns s with pseudonyms.
func (r *Redactor) Summary(s Summary) (Summary, error) {
	var out Summary
	if err := r.through(s, &out); err != nil {
		return out, err
	}
	// Series of node metrics have the names of their nodes.
	for i := range s.Results {
		in, res := &s.Results[i], &out.Results[i]
		for j := range in.Series {
			res.Series[j].Name = r.field(in.Series[j].Name, res.Series[j].Name)
			for label, value := range in.Series[j].Labels {
				res.Series[j].Labels[label] = r.field(value, res.Series[j].Labels[label])
			}
		}
		for j := range in.Stats {
			res.Stats[j].Series = r.field(in.Stats[j].Series, res.Stats[j].Series)
		}
		for j := range in.Metrics {
			res.Metrics[j].Series = r.field(in.Metrics[j].Series, res.Metrics[j].Series)
		}
	}
	return out, nil
}

// Event returns e with pseudonyms.
func (r *Redactor) Event(e interval.Event) interval.Event {
	e.Step, e.Workload, e.Group = r.Text(e.Step), r.Text(e.Workload), r.Text(e.Group)
	e.Subject, e.Node = r.field(e.Subject, r.Text(e.Subject)), r.field(e.Node, r.Text(e.Node))
	e.From = r.field(e.From, r.Text(e.From))
	return e.WithTexts(r.Text)
}

func (r *Redactor) through(in, out any) error {
	text, err := json.Marshal(in)
	if err == nil {
		text, err = r.JSON(text)
	}
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	return err
}
