package report_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/page"

	"golang.org/x/net/html"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/report"
)

func htmlOf(t testing.TB, run *document.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := page.HTML(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func parseHTML(t testing.TB, page []byte) *html.Node {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func findAll(n *html.Node, tag string) []*html.Node {
	var list []*html.Node
	for c := range n.Descendants() {
		if c.Type == html.ElementNode && c.Data == tag {
			list = append(list, c)
		}
	}
	return list
}

func text(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return strings.TrimSpace(b.String())
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// payloads are names that try to run code, end a script, or confuse a reader.
var payloads = []string{
	`</script><script>window.hostile=1</script>`,
	`"><img src=x onerror=window.hostile=1>`,
	`'onmouseover='window.hostile=1`,
	"<!--<script>",
	`{{.Doc}}${window.hostile=1}`,
	"a\u202eb\u2066c\u200b",
	"\x1b[2J\x1b]0;hostile\x07",
	"\u2028\u2029\x00\xff",
	`=HYPERLINK("http://example.org")`,
	"javascript:window.hostile=1",
	strings.Repeat("long ", 3000),
}

// hostileRun has a payload in every string that comes from a scenario, a target or a machine.
func hostileRun() *document.Run {
	run := exampleRun()
	run.Manifest.Rehearsal = rehearsalRun().Manifest.Rehearsal
	next := 0
	replace := func(string) string {
		next++
		return payloads[next%len(payloads)]
	}
	kept := map[string]bool{"Type": true, "Unit": true, "Kind": true, "Severity": true, "Verdict": true, "Statistic": true}
	eachString(reflect.ValueOf(run).Elem(), kept, replace)
	description := strings.Join(payloads, "<p>")
	run.Manifest.Scenario.Description = description
	run.Summary.Findings = []finding.Finding{{Code: payloads[0], Severity: finding.Warning, Subject: payloads[1], Claim: payloads[0],
		Evidence: payloads, Advice: payloads[2]}}
	return run
}

// eachString replaces every string below v, except in fields of the kept names.
func eachString(v reflect.Value, kept map[string]bool, replace func(string) string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(replace(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			eachString(v.Elem(), kept, replace)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !kept[f.Name] {
				eachString(v.Field(i), kept, replace)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachString(v.Index(i), kept, replace)
		}
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return
		}
		out := reflect.MakeMap(v.Type())
		for _, k := range v.MapKeys() {
			key, value := reflect.New(k.Type()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.Set(k)
			value.Set(v.MapIndex(k))
			eachString(key, kept, replace)
			eachString(value, kept, replace)
			out.SetMapIndex(key, value)
		}
		if v.Len() > 0 {
			v.Set(out)
		}
	}
}

// TestHostileNamesStayText: the page has exactly the elements and attributes that the templates write.
func TestHostileNamesStayText(t *testing.T) {
	known := vocabulary(parseHTML(t, htmlOf(t, exampleRun())))
	for name := range vocabulary(parseHTML(t, htmlOf(t, rehearsalRun()))) {
		known[name] = true
	}
	page := htmlOf(t, hostileRun())
	root := parseHTML(t, page)
	for name := range vocabulary(root) {
		if !known[name] {
			t.Errorf("the page has %s, which no template writes", name)
		}
	}
	if n, want := len(findAll(root, "script")), len(findAll(parseHTML(t, htmlOf(t, exampleRun())), "script")); n != want {
		t.Errorf("the page has %d scripts, want %d", n, want)
	}
	for _, c := range []string{"\u202e", "\u2066", "\x1b", "\x00", "\u200b"} {
		if bytes.Contains(page, []byte(c)) {
			t.Errorf("the page holds %q", c)
		}
	}
	var data any
	for _, s := range findAll(root, "script") {
		if attribute(s, "type") == "application/json" {
			if err := json.Unmarshal([]byte(text(s)), &data); err != nil {
				t.Errorf("the data of the charts is not JSON: %v", err)
			}
		}
	}
}

// vocabulary is every element with each of its attributes' names.
func vocabulary(root *html.Node) map[string]bool {
	words := map[string]bool{}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		words["<"+n.Data+">"] = true
		for _, a := range n.Attr {
			words["<"+n.Data+" "+a.Key+">"] = true
		}
	}
	return words
}

func TestHostileNamesOnATerminal(t *testing.T) {
	c, err := compare.Runs([]*document.Run{hostileRun(), hostileRun()}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{0, 40} {
		var b bytes.Buffer
		if err := report.Terminal(&b, hostileRun(), width, false); err != nil {
			t.Fatal(err)
		}
		if err := report.ComparisonTerminal(&b, c, width, false); err != nil {
			t.Fatal(err)
		}
		for _, r := range b.String() {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Fatalf("%d columns: the text holds %U", width, r)
			}
		}
	}
}

func TestHostileNamesInCSV(t *testing.T) {
	run := hostileRun()
	run.Manifest.Run = `=HYPERLINK("http://example.org")`
	for _, write := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return document.CSV(b, run) },
		func(b *bytes.Buffer) error { return document.CSVPoints(b, run) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if first := strings.Trim(line, `"`); strings.HasPrefix(first, "=") {
				t.Fatalf("a cell begins a formula: %.60s", line)
			}
		}
	}
}

func TestRehearsalCannotBeOverlooked(t *testing.T) {
	root := parseHTML(t, htmlOf(t, rehearsalRun()))
	if title := text(findAll(root, "title")[0]); !strings.HasPrefix(title, "REHEARSAL") {
		t.Errorf("the title is %q", title)
	}
	for _, figure := range findAll(root, "figure") {
		caption := text(findAll(figure, "figcaption")[0])
		header := text(findAll(figure, "header")[0])
		if !strings.Contains(caption, "Rehearsal") || !strings.Contains(header, "REHEARSAL") {
			t.Errorf("the figure %q is not marked: %q", header, caption)
		}
	}
	page := text(root)
	for _, want := range []string{"0.0249", "4 instead of 40", "0.0039", "Floors lengthen the run phase", "Switching off a node kills"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if body := findAll(root, "body")[0]; attribute(body, "class") != "rehearsal" {
		t.Error("the printed pages are not marked")
	}
	if page := string(htmlOf(t, exampleRun())); strings.Contains(page, `class="rehearsal-mark"`) {
		t.Error("a full run is marked as a rehearsal")
	}
}

func TestPageLoadsNothing(t *testing.T) {
	root := parseHTML(t, htmlOf(t, exampleRun()))
	for n := range root.Descendants() {
		for _, name := range []string{"src", "href", "action", "srcset", "style"} {
			if v := attribute(n, name); n.Type == html.ElementNode && v != "" && !strings.HasPrefix(v, "#") {
				t.Errorf("<%s %s=%q>", n.Data, name, v)
			}
		}
	}
	i := slices.IndexFunc(findAll(root, "meta"), func(n *html.Node) bool { return attribute(n, "http-equiv") == "Content-Security-Policy" })
	if i < 0 || !strings.HasPrefix(attribute(findAll(root, "meta")[i], "content"), "default-src 'none'") {
		t.Error("the page has no strict content security policy")
	}
}

// TestCutOffBundle: a bundle without a summary still gives a report that says so.
func TestCutOffBundle(t *testing.T) {
	run := exampleRun()
	run.Summary = document.Run{}.Summary
	run.Plan = json.RawMessage(`{"steps": [`)
	page := text(parseHTML(t, htmlOf(t, run)))
	for _, want := range []string{"UNDECIDED", "cut off before it was sealed", "Cannot read the plan of this bundle", "nodes.PowerOff node-3"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, r := range report.Renderers() {
		var b bytes.Buffer
		if err := r.Render(&b, &document.Run{}, report.Options{}); err != nil {
			t.Errorf("%s of an empty run: %v", r.Name, err)
		}
	}
}
