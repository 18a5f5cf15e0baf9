package diag

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRenderDrawsTheCaretUnderTheWord(t *testing.T) {
	var list List
	list.Add(Diagnostic{
		Code: "unknown-key", Pos: Position{File: "test.yml", Line: 12, Column: 8}, Width: 4,
		Source: "\t      vcpu: 2", Rendered: "      vcpu: 3", Message: `unknown key "vcpu"`, Hint: `did you mean "vcpus"?`,
	})
	list.Warnf(Position{File: "test.yml", Line: 3}, "late", "this comes first: it is on line 3")
	var out bytes.Buffer
	if err := Render(&out, list); err != nil {
		t.Fatal(err)
	}
	want := "test.yml:3: warning: this comes first: it is on line 3 [late]\n" +
		"test.yml:12:8: error: unknown key \"vcpu\" [unknown-key]\n" +
		"   12 | \t      vcpu: 2\n" +
		"      | \t      ^^^^\n" +
		"      = rendered: vcpu: 3\n" +
		"      = did you mean \"vcpus\"?\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestRenderShowsAWindowOfALongLine(t *testing.T) {
	var list List
	list.Add(Diagnostic{Code: "x", Pos: Position{File: "f", Line: 1, Column: 1001}, Width: 500, Message: "here",
		Source: strings.Repeat("ä", 500) + "X" + strings.Repeat("y", 500)})
	var out bytes.Buffer
	if err := Render(&out, list); err != nil {
		t.Fatal(err)
	}
	want := "f:1:1001: error: here [x]\n" +
		"    1 | …" + strings.Repeat("ä", 30) + "X" + strings.Repeat("y", 99) + "…\n" +
		"      | " + strings.Repeat(" ", 31) + strings.Repeat("^", 100) + "\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestRenderNeverWritesControlCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Repeat(rapid.String().Draw(t, "source"), rapid.IntRange(1, 20).Draw(t, "times"))
		var list List
		list.Add(Diagnostic{Code: "x", Pos: Position{Line: 1, Column: rapid.IntRange(0, 300).Draw(t, "column")}, Width: rapid.IntRange(0, 900).Draw(t, "width"), Source: source})
		var out bytes.Buffer
		if err := Render(&out, list); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r != '\n' && r != '\t' && r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 {
				t.Fatalf("control character %q in %q", r, out.String())
			}
		}
	})
}

func TestErr(t *testing.T) {
	var list List
	list.Warnf(Position{Line: 1}, "w", "only a warning")
	if err := list.Err(); err != nil {
		t.Fatalf("a warning became an error: %v", err)
	}
	list.Errorf(Position{File: "b", Line: 9, Column: 2}, "e", "second")
	list.Errorf(Position{File: "a", Line: 4}, "e", "first")
	err := fmt.Errorf("load: %w", list.Err())
	if got, want := err.Error(), "load: a:4: first (and 1 more)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if code := ExitCode(err); code != ExitData {
		t.Errorf("exit code %d, want %d", code, ExitData)
	}
}

func TestExitCode(t *testing.T) {
	for want, err := range map[int]error{
		ExitPass:        nil,
		ExitInternal:    errors.New("surprise"),
		ExitInterrupted: fmt.Errorf("run: %w", context.Canceled),
		ExitLocked:      fmt.Errorf("run: %w", &Error{Code: "locked", Message: "target is in use", Exit: ExitLocked}),
	} {
		if got := ExitCode(err); got != want {
			t.Errorf("ExitCode(%v) = %d, want %d", err, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	keys := []string{"vcpus", "ram_mb", "count_per_node", "template"}
	for word, want := range map[string]string{
		"vcpu": "vcpus", "ram-mb": "ram_mb", "count_pre_node": "count_per_node", "VCPUS": "vcpus", "zebra": "", "": "",
	} {
		if got := Nearest(word, keys); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestEditDistanceIsAMetric(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := editDistance(a, b)
		if d != editDistance(b, a) {
			t.Fatalf("not symmetric: %d", d)
		}
		if (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Fatalf("distance of %q and %q is %d", a, b, d)
		}
	})
	if got := editDistance("ab", "ba"); got != 1 {
		t.Errorf("a swap of neighbors counts %d, want 1", got)
	}
}

func TestPositionString(t *testing.T) {
	for want, p := range map[string]Position{
		"a.fio": {File: "a.fio"}, "a.fio:3": {File: "a.fio", Line: 3}, "a.fio:3:1": {File: "a.fio", Line: 3, Column: 1}, "": {},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !strings.HasPrefix(Position{File: "x", Line: 1}.String(), "x:") {
		t.Error("no file")
	}
}
