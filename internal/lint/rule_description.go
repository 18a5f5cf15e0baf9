package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/verb"
)

var ruleDescription = Rule{
	Code:     "description-disagrees",
	Severity: finding.Warning,
	Summary:  "The description names a duration that no step has.",
	Doc: "Readers of a report take its conditions from the description. The rule reads sentences such as \"Wait for 30 minutes\" " +
		"and \"Run for 1 hour\", and looks for a step of that length. It skips text below the heading of another variant: " +
		"\"Standard Intensity:\" in a scenario called \"Snapshot Impact: High Intensity\".",
	Check: func(f *Facts) []finding.Finding {
		var out []finding.Finding
		waits, all := stepLengths(f)
		for _, s := range sentences(f.Scenario.Description, f.Scenario.DisplayName) {
			lengths, what := all, "steps take "
			if s.waits {
				lengths, what = waits, "waits take "
			}
			if slices.ContainsFunc(lengths, func(d time.Duration) bool { return closeTo(d, s.length) }) {
				continue
			}
			out = append(out, finding.Finding{Subject: "description", Pos: find(f, s.text),
				Claim: fmt.Sprintf("The description says %q, and no step takes %s.", s.text,
					unit.FormatDuration(s.length)),
				Evidence: []string{what + listLengths(lengths)}})
		}
		return out
	},
}

type sentence struct {
	text   string
	length time.Duration
	waits  bool // it is about waiting, so the runtime of a load does not match it
}

var (
	markup = regexp.MustCompile(`<[^>]*>`)
	// A verb that means waiting or running, some words, and a time.
	timed = regexp.MustCompile(`(?i)` +
		`\b(?:re)?(?:wait|run|start|warm)[a-z]*\b[^.]*?\bfor (?:another )?(\d+(?:\.\d+)?) (?:more )?(second|minute|hour)s?\b` +
		`|\bwait (\d+(?:\.\d+)?) (second|minute|hour)s?\b` +
		`|\bruntime of (\d+(?:\.\d+)?) (second|minute|hour)s?\b`)
	timeUnits = map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour}
)

// sentences returns the sentences of a description that state a time and are about the scenario with that title.
func sentences(description, title string) []sentence {
	var out []sentence
	raw := strings.Split(description, "\n")
	lines := make([]string, len(raw))
	for i, line := range raw {
		lines[i] = markup.ReplaceAllString(line, "")
	}
	ours := func(heading string) bool { return strings.Contains(strings.ToLower(title), strings.ToLower(heading)) }
	// Headings distinguish variants only if one of them is this scenario.
	variants := slices.ContainsFunc(lines, func(line string) bool { h := heading(line); return h != "" && ours(h) })
	other := false
	for i, line := range lines {
		if h := heading(line); h != "" {
			other = variants && !ours(h)
		} else if strings.Contains(strings.ToLower(raw[i]), "<strong>") {
			other = false // another section
		}
		m := timed.FindStringSubmatch(line)
		if m == nil || other {
			continue
		}
		for i := 1; i+1 < len(m); i += 2 {
			if n, err := strconv.ParseFloat(m[i], 64); err == nil {
				length := time.Duration(n * float64(timeUnits[strings.ToLower(m[i+1])]))
				text := strings.TrimSpace(line)
				out = append(out, sentence{text, length, strings.HasPrefix(strings.ToLower(text), "wait")})
			}
		}
	}
	return out
}

// heading returns the text of a line without markup that ends in a colon, "" for other lines.
func heading(line string) string {
	text, ok := strings.CutSuffix(strings.TrimSpace(line), ":")
	if !ok {
		return ""
	}
	return strings.TrimSpace(text)
}

// stepLengths lists the times of waits, and of waits and loads together, each with their sums between two events of unknown
// length.
func stepLengths(f *Facts) (waits, all []time.Duration) {
	var together time.Duration
	for _, c := range f.Calls {
		if runtime := c.Runtime(); runtime > 0 {
			all = append(all, runtime)
		}
		span, d := c.Span()
		switch {
		case span != verb.SpanTold:
			together = 0
		case d > 0:
			together += d
			waits = append(waits, together)
			all = append(all, d, together)
			if c.Kind.Waits {
				waits = append(waits, d)
			}
		}
	}
	return waits, all
}

func closeTo(a, b time.Duration) bool { return (a - b).Abs() <= b/50 }

func listLengths(lengths []time.Duration) string {
	seen := map[string]bool{}
	var words []string
	for _, d := range slices.Sorted(slices.Values(lengths)) {
		if text := unit.FormatDuration(d); !seen[text] {
			seen[text] = true
			words = append(words, text)
		}
	}
	if len(words) > 8 {
		words = append(words[:8], "…")
	}
	if len(words) == 0 {
		return "no time that is known beforehand"
	}
	return strings.Join(words, ", ")
}

// find returns the position of a sentence of the description in the user's text, or nil if the template computes it.
func find(f *Facts, text string) *diag.Position {
	for i, line := range strings.Split(f.Scenario.Source, "\n") {
		if at := strings.Index(line, text); at >= 0 {
			return &diag.Position{File: file(f), Line: i + 1, Column: at + 1}
		}
	}
	return nil
}

// file returns the name of the document in messages.
func file(f *Facts) string {
	for _, c := range f.Calls {
		return c.Pos.File
	}
	return ""
}
