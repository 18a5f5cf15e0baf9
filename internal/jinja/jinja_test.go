package jinja_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/jinja"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var vars = map[string]any{"groups": int64(3), "runtime": int64(240), "name": "oltp"}

func TestEveryByteKnowsItsOrigin(t *testing.T) {
	source := "vms:\n{% for g in range(groups) %}\n - group_{{g}}: {{ name }}\n{% endfor %}\nend {{- 1 }}"
	out, faults := jinja.Render(source, vars, jinja.Limits{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for i := range len(out.Text) {
		from, width := out.Origin(i)
		if width == 0 && source[from] != out.Text[i] {
			t.Errorf("byte %d is %q and comes from %q at %d", i, out.Text[i], source[from], from)
		}
		if width > 0 && !strings.HasPrefix(source[from:], "{{") {
			t.Errorf("byte %d comes from a tag at %d, where there is %q", i, from, source[from:from+2])
		}
	}
	second := strings.Index(out.Text, "group_1") + len("group_")
	if from, width := out.Origin(second); source[from:from+width] != "{{g}}" {
		t.Errorf("the 1 of group_1 comes from %q", source[from:from+width])
	}
}

// Small texts that would take gigabytes, hours or the whole stack.
var bombs = map[string]string{
	"range":            "{% for i in range(20000000) %}{% endfor %}",
	"range as list":    "{{ range(20000000)|list|length }}",
	"nested loops":     strings.Repeat("{% for i in range(1000) %}", 8) + "x" + strings.Repeat("{% endfor %}", 8),
	"repeated text":    "{{ 'a' * 10**9 }}",
	"repeated twice":   "{% set a = 'a' * 10000000 %}{% set b = a * 10000000 %}",
	"repeated list":    "{{ ([1] * 10**9)|length }}",
	"doubling text":    "{% set ns = namespace(a='aaaaaaaa') %}{% for i in range(99) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}",
	"doubling list":    "{% set ns = namespace(a=[1]) %}{% for i in range(99) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
	"nested list":      "{% set ns = namespace(a=[1]) %}{% for i in range(99) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a == [ns.a] }}{{ ns.a|string|length }}",
	"list in itself":   "{% set l = [] %}{% set _ = l.append(l) %}{{ l == l }}{{ l }}",
	"growing list":     "{% set l = [1] %}{% for i in l %}{% set _ = l.append(i) %}{% endfor %}{{ l|length }}",
	"power":            "{{ 10 ** 10 ** 10 ** 10 }}",
	"power of floats":  "{{ 10.0 ** 400 }}",
	"replace":          "{{ ('a' * 1000000)|replace('a', 'b' * 1000000) }}",
	"join":             "{{ (['a' * 100000] * 100000)|join('b' * 100000)|length }}",
	"join of a string": "{{ ('x' * 100000).join('abcdefghijklmnopqrstuvwxyz' * 1000)|length }}",
	"zfill":            "{{ '1'.zfill(1000000000)|length }}",
	"wide format":      "{{ '%999999999d' | format(1) }}",
	"brackets":         "{{ " + strings.Repeat("(", 100000) + strings.Repeat(")", 100000) + " }}",
	"lists":            "{{ " + strings.Repeat("[", 100000) + " }}",
	"minus signs":      "{{ " + strings.Repeat("-", 100000) + "1 }}",
	"nots":             "{{ " + strings.Repeat("not ", 100000) + "1 }}",
	"additions":        "{{ 1" + strings.Repeat("+1", 400000) + " }}",
	"attributes":       "{{ name" + strings.Repeat(".a", 400000) + " }}",
	"filters":          "{{ 1" + strings.Repeat("|abs", 200000) + " }}",
	"elses":            "{{ 1" + strings.Repeat(" if 0 else 1", 80000) + " }}",
	"ifs":              strings.Repeat("{% if 1 %}", 100000),
	"elifs":            "{% if 0 %}" + strings.Repeat("{% elif 0 %}", 80000) + "{% endif %}",
	"fors":             strings.Repeat("{% for a in [1] %}", 50000),
	"ends":             strings.Repeat("{% endfor %}", 80000),
	"raws":             strings.Repeat("{% raw %}", 100000),
	"open tags":        strings.Repeat("{{", 400000),
	"open comments":    strings.Repeat("{#", 400000),
	"quotes":           strings.Repeat("{{ '", 200000),
	"outputs":          "{% for i in range(100000) %}" + strings.Repeat("x", 1000) + "{% endfor %}",
	"slow compare":     "{% set a = range(90000)|list %}{% for i in range(90000) %}{{ a == a }}{% endfor %}",
	"slow search":      "{% set a = 'a' * 1000000 %}{% for i in range(90000) %}{{ 'b' in a }}{% endfor %}",
	"slow index":       "{% set a = 'a' * 1000000 %}{% for i in range(90000) %}{{ a[i] }}{% endfor %}",
	"slow sort":        "{% set a = range(90000)|list %}{% for i in range(90000) %}{{ a|sort|first }}{% endfor %}",
	"slow sum":         "{% for i in range(90000) %}{{ range(90000)|sum }}{% endfor %}",
	"map of map":       "{{ range(100000)|map('string')|map('list')|map('join')|list|length }}",
	"block sets":       "{% set x %}" + strings.Repeat("{% set x %}", 1000) + "{% endset %}",
}

// Each bomb ends in an error or in a small result. That it ends is the point; the go tool's deadline is the guard.
func TestBombsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	harmless := map[string]bool{"list in itself": true, "growing list": true, "join of a string": true}
	for name, source := range bombs {
		t.Run(name, func(t *testing.T) {
			out, faults := jinja.Render(source, vars, jinja.Limits{})
			if len(faults) == 0 && !harmless[name] && len(out.Text) > 100 {
				t.Errorf("rendered %d bytes without a fault", len(out.Text))
			}
			if len(faults) > 20 {
				t.Errorf("%d faults", len(faults))
			}
		})
	}
}

// faulty are templates whose complaints a person should understand.
var faulty = []string{
	"{{ grops }}",
	"{{ a }} {{ b|default(1) }} {% if c is defined %}{{ d }}{% endif %}",
	"{% for g in range(groups) %}{{ g / 0 }}{{ 'x' + g }}{% endfor %}",
	"{% include 'x' %}{% import 'x' as y %}{% macro f() %}{{ f() }}{% endmacro %}{% extends 'x' %}",
	"{% fro g in groups %}",
	"{{ groups | rond }}{{ groups is od }}",
	"{% for g in range(groups %}x{% endfor %}",
	"{% for g in range(groups) %}",
	"{% if groups = 3 %}x{% endif %}",
	"{{ groups.x }}{{ name.foo() }}{{ range('a') }}{{ name[0:'a'] }}",
	"{% for g in groups %}{% endfor %}",
	"{{ range(10)|list|batch }}{{ name|round }}{{ name|replace(1) }}{{ name|upper(1) }}",
	"{{ loop.index }}{% for g in [1] %}{{ loop.idnex }}{% endfor %}",
	"{% set x.y = 1 %}",
	"{{ 'open }}",
	"{{ 9999999999999999999 }}{{ 9223372036854775807 + 1 }}",
	"{{ name.__class__ }}{{ self }}{{ lipsum() }}",
	"{{ {}[[]] }}{{ 'a' in 5 }}",
}

func TestFaultsAreUnderstandable(t *testing.T) {
	var b strings.Builder
	for _, source := range faulty {
		fmt.Fprintln(&b, source)
		_, faults := jinja.Render(source, vars, jinja.Limits{})
		for _, f := range faults {
			fmt.Fprintf(&b, "%s%s %s: %s", strings.Repeat(" ", f.Offset), strings.Repeat("^", f.Width), f.Code, f.Message)
			if f.Hint != "" {
				fmt.Fprintf(&b, " (%s)", f.Hint)
			}
			fmt.Fprintln(&b)
		}
		fmt.Fprintln(&b)
	}
	if *update {
		if err := os.WriteFile("testdata/faults.golden", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/faults.golden")
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the messages changed:\n%s", b.String())
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range faulty {
		f.Add(s)
	}
	for _, s := range bombs {
		if len(s) < 1000 {
			f.Add(s)
		}
	}
	f.Add("{% for g in range(groups) %}\n - {{ g }}{% endfor %}{# c #}{% raw %}{{{% endraw %}")
	f.Fuzz(func(t *testing.T, source string) {
		out, faults := jinja.Render(source, vars, jinja.Limits{Steps: 20_000, ValueBytes: 1 << 20, OutputBytes: 1 << 16})
		if (out == nil) == (len(faults) == 0) {
			t.Fatalf("output %v with %d faults", out != nil, len(faults))
		}
		for _, fault := range faults {
			if fault.Offset < 0 || fault.Width < 0 || fault.Offset+fault.Width > len(source) || fault.Message == "" {
				t.Fatalf("fault %+v in %d bytes", fault, len(source))
			}
		}
		if out == nil {
			return
		}
		for i := range len(out.Text) {
			if from, width := out.Origin(i); width == 0 && source[from] != out.Text[i] || from+width > len(source) {
				t.Fatalf("byte %d of the output does not come from byte %d", i, from)
			}
		}
	})
}
