package result

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
)

// Redactor replaces what tells whose machines were measured: names of the target and its nodes, network addresses,
// host names, MAC addresses, identifiers and file paths. The same name always becomes the same pseudonym, so that a
// redacted report still tells nodes apart. Names that come from the scenario (groups, workloads, VMs) stay.
//
// It works on text, hence also on fields that are added later; it cannot know names that stand in free text only.
type Redactor struct {
	names   map[string]string // known names → pseudonym
	known   *regexp.Regexp    // all of them, longest first
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
		`(?P<path>(?:^|[\s"'=(,:])(?:/[^\s"'<>:,;=()/]+){2,})`,
		`(?P<host>\b(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\.)+(?:local|lan|internal|corp|home|intra|` +
			`com|net|org|io|de|eu|uk)\b)`,
	}, "|"))
)

// NewRedactor learns the names of one run.
func NewRedactor(m Manifest) *Redactor {
	r := &Redactor{names: map[string]string{}, keep: map[string]bool{}, numbers: map[string]int{}}
	r.keep["127.0.0.1"], r.keep["0.0.0.0"], r.keep["::1"] = true, true, true
	if m.Target.Provider != "local" && m.Target.Provider != "fake" {
		r.learn("target", m.Target.Name)
	}
	for _, n := range m.Target.Nodes {
		// One node keeps one pseudonym under both of its names.
		r.learn("node", n.ID)
		if n.ID != "" && n.Name != "" {
			r.names[n.Name] = r.names[n.ID]
		}
	}
	for _, key := range []string{"hostname", "host", "host name", "user"} {
		r.learn(strings.Fields(key)[0], m.Environment[key])
	}
	var all []string
	for name := range r.names {
		all = append(all, wordEdge(name[:1])+regexp.QuoteMeta(name)+wordEdge(name[len(name)-1:]))
	}
	if len(all) > 0 {
		slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
		r.known = regexp.MustCompile(strings.Join(all, "|"))
	}
	return r
}

// wordEdge asks for the edge of a word beside a name that begins or ends like a word, so that node-1 is not found in
// node-10.
func wordEdge(letter string) string {
	if regexp.MustCompile(`\w`).MatchString(letter) {
		return `\b`
	}
	return ""
}

func (r *Redactor) learn(kind, name string) {
	// Shorter names would be found inside ordinary words.
	if len(name) < 3 || r.names[name] != "" {
		return
	}
	r.names[name] = r.pseudonym(kind)
}

func (r *Redactor) pseudonym(kind string) string {
	r.numbers[kind]++
	return fmt.Sprintf("%s-%d", kind, r.numbers[kind])
}

// Text returns s with pseudonyms.
func (r *Redactor) Text(s string) string {
	if r.known != nil {
		s = r.known.ReplaceAllStringFunc(s, func(name string) string { return r.names[name] })
	}
	groups := addressPattern.SubexpNames()
	return replaceGroups(addressPattern, s, func(group int, found string) string {
		before := ""
		if at := strings.IndexByte(found, '/'); groups[group] == "path" && at > 0 {
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

// replaceGroups replaces every match by what f says of it and of the number of the group that matched.
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
	return json.Marshal(r.walk(v))
}

func (r *Redactor) walk(v any) any {
	switch v := v.(type) {
	case string:
		return r.Text(v)
	case []any:
		for i := range v {
			v[i] = r.walk(v[i])
		}
	case map[string]any:
		for key, value := range v {
			v[key] = r.walk(value)
		}
	}
	return v
}

// Manifest returns m with pseudonyms.
func (r *Redactor) Manifest(m Manifest) (Manifest, error) {
	var out Manifest
	err := r.through(m, &out)
	return out, err
}

// Summary returns s with pseudonyms.
func (r *Redactor) Summary(s Summary) (Summary, error) {
	var out Summary
	err := r.through(s, &out)
	return out, err
}

// Event returns e with pseudonyms.
func (r *Redactor) Event(e interval.Event) interval.Event {
	e.Step, e.Workload, e.Group = r.Text(e.Step), r.Text(e.Workload), r.Text(e.Group)
	e.Subject, e.Message, e.Error = r.Text(e.Subject), r.Text(e.Message), r.Text(e.Error)
	return e
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
