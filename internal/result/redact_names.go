package result

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// machineKeys are the entries of an environment that name a machine, a person or a place.
var machineKeys = []string{"hostname", "host", "host name", "user", "file system device"}

// builtinTarget matches targets that have the same name everywhere.
var builtinTarget = regexp.MustCompile(`^(local|fake)(:\d+)?$`)

// localDevice matches device names of file systems that identify no person or host; a volume group or a server could.
var localDevice = regexp.MustCompile(`^(/dev/((sd|vd|xvd|hd|nvme|md|dm-|loop|mmcblk|pmem|ram)[a-z0-9]*|root)|[a-z]+)$`)

// NewRedactor learns the names of runs that are shown together.
func NewRedactor(manifests ...Manifest) *Redactor {
	r := &Redactor{
		names: map[string]string{}, fields: map[string]string{}, labels: map[string]string{},
		keep: map[string]bool{"127.0.0.1": true, "0.0.0.0": true, "::1": true}, numbers: map[string]int{},
	}
	for i := range manifests {
		r.learnRun(&manifests[i])
	}
	var all []string
	for name := range r.names {
		all = append(all, wordEdge(name[:1])+regexp.QuoteMeta(name)+wordEdge(name[len(name)-1:]))
	}
	if len(all) > 0 {
		slices.SortFunc(all, func(a, b string) int {
			if len(a) != len(b) {
				return len(b) - len(a)
			}
			return strings.Compare(a, b)
		})
		r.known = regexp.MustCompile(strings.Join(all, "|"))
	}
	return r
}

func (r *Redactor) learnRun(m *Manifest) {
	if !builtinTarget.MatchString(m.Target.Name) {
		r.learn("target", m.Target.Name)
	}
	for _, n := range m.Target.Nodes {
		// One node keeps one pseudonym under both of its names.
		r.learn("node", n.ID)
		r.alias(n.Name, r.pseudonymOf(n.ID))
		r.learn("node", n.Name)
	}
	for _, key := range machineKeys {
		if key == "file system device" {
			if device := m.Environment[key]; !localDevice.MatchString(device) {
				r.learn("device", device)
			}
			continue
		}
		r.learn(strings.Fields(key)[0], m.Environment[key])
	}
	if m.Label != "" && r.labels[m.Label] == "" {
		r.labels[m.Label] = r.pseudonym("label")
	}
	r.learnCommandLine(m.CommandLine)
}

// learnCommandLine learns every word that is a path, relative ones too, and the bare name of the target file, which
// messages repeat.
func (r *Redactor) learnCommandLine(words []string) {
	eachWord(words, func(_ int, flag, value string) {
		switch flag {
		case "--target":
			if value != "" && !builtinTarget.MatchString(value) {
				r.learn("path", value)
				r.alias(filepath.Base(value), r.names[value])
			}
		case "--runs", "--out":
			r.learn("path", value)
		case "":
			if looksLikePath(value) {
				r.learn("path", value)
			}
		}
	})
}

// looksLikePath distinguishes a file or a folder from the name of a scenario. Device names come from scenarios and do not count
// as paths.
func looksLikePath(word string) bool {
	if strings.HasPrefix(word, "/dev/") || strings.Contains(word, "://") {
		return false
	}
	return strings.ContainsRune(word, '/') || slices.Contains([]string{".yml", ".yaml", ".fio", ".job", ".json"}, filepath.Ext(word))
}

// eachWord calls f for every word, with the flag whose value it is; flag is empty for other words. An unknown flag is assumed to
// have its value after "=", so that no word is skipped.
func eachWord(words []string, f func(i int, flag, value string)) {
	before := ""
	for i, word := range words {
		flag, value, joined := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "--") && joined:
			f(i, flag, value)
			before = ""
		case slices.Contains([]string{"--target", "--runs", "--out", "--label", "--set"}, word):
			before = word
		default:
			f(i, before, word)
			before = ""
		}
	}
}

// commandLine returns words with pseudonyms.
func (r *Redactor) commandLine(words []string) []string {
	out := slices.Clone(words)
	eachWord(words, func(i int, flag, value string) {
		head := strings.TrimSuffix(words[i], value)
		switch flag {
		case "--label":
			out[i] = head + r.label(value)
		case "--target", "--runs", "--out":
			out[i] = head + r.field(value, r.Text(value))
		default:
			out[i] = head + r.Text(value)
		}
	})
	return out
}

func (r *Redactor) label(label string) string {
	if p := r.labels[label]; p != "" {
		return p
	}
	return r.Text(label)
}

// field returns the pseudonym of a name that is replaced in this field only, otherwise made, the text as redacted so far.
func (r *Redactor) field(name, made string) string {
	if p := r.fields[name]; p != "" {
		return p
	}
	return made
}

// learn gives a name a pseudonym, unless it has one.
func (r *Redactor) learn(kind, name string) {
	if tells(name) && r.pseudonymOf(name) == "" {
		r.alias(name, r.pseudonym(kind))
	}
}

// alias gives a name the pseudonym of another one.
func (r *Redactor) alias(name, pseudonym string) {
	switch {
	case pseudonym == "" || !tells(name) || r.pseudonymOf(name) != "":
	case searchable(name):
		r.names[name] = pseudonym
	default:
		r.fields[name] = pseudonym
	}
}

// tells reports whether a name identifies a machine: plain node numbers do not.
func tells(name string) bool {
	if strings.ContainsFunc(name, isLetter) {
		return true
	}
	return len(name) > 2 && strings.ContainsAny(name, "0123456789")
}

func (r *Redactor) pseudonymOf(name string) string {
	if p := r.names[name]; p != "" {
		return p
	}
	return r.fields[name]
}

// searchable reports whether a name may be replaced wherever it occurs as a word. Numbers, letters as short as a unit ("ms"), and
// words in a bundle's own fields also occur with other meanings.
func searchable(name string) bool {
	if !strings.ContainsFunc(name, isLetter) || len(name) < 2 || len(name) == 2 && !strings.ContainsAny(name, "0123456789") {
		return false
	}
	return !slices.Contains(ownWords, name)
}

// ownWords are values of the bundle's own fields, which readers depend on.
var ownWords = strings.Fields(`setup run teardown read write trim service response mean p99 all local fake native fio bragg
	completed failed interrupted aborted PASS FAIL UNDECIDED UNKNOWN COMPLETED VALID QUALIFIED INVALID warning info fail unknown latency iops IOPS bandwidth errors active
	generic metric node vm`)

func isLetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c > 0x7f }

// wordEdge requires a word boundary next to a name that begins or ends with a word character, so that node-1 does not match in
// node-10.
func wordEdge(letter string) string {
	if regexp.MustCompile(`\w`).MatchString(letter) {
		return `\b`
	}
	return ""
}

func (r *Redactor) pseudonym(kind string) string {
	r.numbers[kind]++
	return fmt.Sprintf("%s-%d", kind, r.numbers[kind])
}
