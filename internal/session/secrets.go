package session

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/verb"
)

// masked replaces a secret in a bundle.
const masked = "***"

// secretBytesMin is the length from which a text is looked for in other texts: shorter ones would be found everywhere.
const secretBytesMin = 4

// secretName matches variable names that scenarios use for secrets.
var secretName = regexp.MustCompile(`(?i)pass(word|wd|phrase)?$|secret|(^|[_-])token$|(api|private|access)[_-]?key$|credentials?$`)

// secrets keeps passwords of a scenario out of its bundle: values of arguments that are always secret, and of variables
// and keys with such names.
type secrets struct {
	catalog verb.Catalog
	texts   []string // secrets to find in running text, longest first
}

func secretsOf(sc *scenario.Scenario, catalog verb.Catalog) *secrets {
	s := &secrets{catalog: catalog}
	for _, v := range sc.Variables {
		if secretName.MatchString(v.Name) {
			s.learn(append([]any{v.Value, v.Default}, v.Options...)...)
		}
	}
	for _, calls := range [][]scenario.Call{sc.Setup, sc.Run, sc.Teardown} {
		for _, call := range scenario.Flatten(calls) {
			for _, a := range call.Args {
				s.gather(a.Value, s.secretArgument(call.Name, a.Name))
			}
		}
	}
	slices.SortFunc(s.texts, func(a, b string) int { return len(b) - len(a) })
	s.texts = slices.Compact(s.texts)
	return s
}

func (s *secrets) secretArgument(step, name string) bool {
	kind, ok := s.catalog.Kind(step)
	if !ok {
		return secretName.MatchString(name)
	}
	return slices.ContainsFunc(kind.Arguments(), func(a verb.Argument) bool { return a.Name == name && a.Secret })
}

// gather learns the texts below value that are secret.
func (s *secrets) gather(value any, secret bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			s.gather(inner, secret || secretName.MatchString(key))
		}
	case []any:
		for _, inner := range v {
			s.gather(inner, secret)
		}
	case nil, bool:
	default:
		if secret {
			s.learn(v)
		}
	}
}

func (s *secrets) learn(values ...any) {
	for _, v := range values {
		// A number would be found where it means something else.
		if text, ok := v.(string); ok && len(text) >= secretBytesMin && text != masked {
			s.texts = append(append(s.texts, text), writtenForms(text)...)
		}
	}
}

// writtenForms are the ways in which JSON, Jinja, YAML, HTML, URLs and commands of a shell write text, where they differ from it.
func writtenForms(text string) []string {
	forms := []string{
		inJSON(text, true), inJSON(text, false), strings.ReplaceAll(inJSON(text, true), "'", `\u0027`),
		strings.ReplaceAll(text, "'", "''"), html.EscapeString(text), url.QueryEscape(text), url.PathEscape(text),
		strings.TrimPrefix(url.UserPassword("", text).String(), ":"),
	}
	for _, quote := range []string{`'\''`, `'"'"'`} { // of shells, and of Python for shells
		quoted := strings.ReplaceAll(text, "'", quote)
		forms = append(forms, quoted, inJSON(quoted, false))
	}
	return slices.DeleteFunc(forms, func(form string) bool { return form == text })
}

// inJSON is text between the quotes of a JSON string.
func inJSON(text string, escapeHTML bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escapeHTML)
	_ = e.Encode(text) // a string in memory is always written
	line := strings.TrimSuffix(b.String(), "\n")
	return line[1 : len(line)-1]
}

// text masks every known secret in running text.
func (s *secrets) text(t string) string {
	for _, secret := range s.texts {
		t = strings.ReplaceAll(t, secret, masked)
	}
	return t
}

// value masks below value: all of it where it is secret, else known secrets in its texts.
func (s *secrets) value(value any, secret bool) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			out[key] = s.value(inner, secret || secretName.MatchString(key))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = s.value(inner, secret)
		}
		return out
	case nil, bool:
		return v
	case string:
		if !secret {
			return s.text(v)
		}
	}
	if secret {
		return masked
	}
	return value
}

// scenario returns sc with masks: names and structure stay, so that its results can be evaluated again.
func (s *secrets) scenario(sc *scenario.Scenario) *scenario.Scenario {
	out := *sc
	out.Source, out.Rendered = s.text(sc.Source), s.text(sc.Rendered)
	out.Variables = slices.Clone(sc.Variables)
	for i, v := range out.Variables {
		secret := secretName.MatchString(v.Name)
		v.Value, v.Default = s.value(v.Value, secret), s.value(v.Default, secret)
		if secret {
			v.Options = nil
		}
		out.Variables[i] = v
	}
	for _, calls := range []*[]scenario.Call{&out.Setup, &out.Run, &out.Teardown} {
		*calls = s.calls(*calls)
	}
	out.Warnings = s.diagnostics(sc.Warnings)
	out.Files = map[string]string{}
	for name, text := range sc.Files {
		out.Files[name] = s.text(text)
	}
	return &out
}

// calls returns calls with masks, those below them too.
func (s *secrets) calls(calls []scenario.Call) []scenario.Call {
	calls = slices.Clone(calls)
	for i, call := range calls {
		args := slices.Clone(call.Args)
		for k, a := range args {
			blocks, ok := a.Value.(scenario.Blocks)
			if !ok {
				args[k].Value = s.value(a.Value, s.secretArgument(call.Name, a.Name))
				continue
			}
			masked := make(scenario.Blocks, len(blocks))
			for n, block := range blocks {
				masked[n] = s.calls(block)
			}
			args[k].Value = masked
		}
		calls[i].Args = args
	}
	return calls
}

// plan returns the plan to record: with masks in the arguments of its steps.
func (s *secrets) plan(p *plan.Plan) *plan.Plan {
	out := *p
	out.Steps = slices.Clone(p.Steps)
	for i, step := range out.Steps {
		args, _ := s.value(plainly(step.Args), false).(map[string]any)
		out.Steps[i].Args, out.Steps[i].Subject, out.Steps[i].Label = args, s.text(step.Subject), s.text(step.Label)
	}
	out.Windows = slices.Clone(p.Windows)
	for i, name := range out.Windows {
		out.Windows[i] = s.text(name)
	}
	out.Warnings = s.diagnostics(p.Warnings)
	return &out
}

// diagnostics masks what diagnostics show of a text.
func (s *secrets) diagnostics(list diag.List) diag.List {
	out := slices.Clone(list)
	for i, d := range out {
		out[i].Source, out[i].Rendered = s.text(d.Source), s.text(d.Rendered)
		out[i].Message, out[i].Hint = s.text(d.Message), s.text(d.Hint)
	}
	return out
}

// plainly turns values of all types into those of JSON.
func plainly(args map[string]any) any {
	text, err := json.Marshal(args)
	var out any
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return nil // arguments came from text and go to text
	}
	return out
}
