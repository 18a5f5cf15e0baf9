package finding

import (
	"encoding/json"
	"testing"
)

func TestExitCodeTakesTheWorst(t *testing.T) {
	info, undecided, fail := Finding{Severity: Info}, Finding{Severity: Undecided}, Finding{Severity: Fail}
	for _, c := range []struct {
		all  []Finding
		want int
	}{
		{nil, 0}, {[]Finding{info, {Severity: Warning}}, 0}, {[]Finding{info, undecided, info}, 3}, {[]Finding{undecided, fail}, 1}, {[]Finding{fail, undecided}, 1},
	} {
		if got := ExitCode(c.all); got != c.want {
			t.Errorf("ExitCode(%v) = %d, want %d", c.all, got, c.want)
		}
	}
}

// TestFormerSeverity reads findings of bundles that call an undecided one "unknown".
func TestFormerSeverity(t *testing.T) {
	for text, want := range map[string]Severity{"unknown": Undecided, "undecided": Undecided, "warning": Warning, "later": "later"} {
		var f Finding
		if err := json.Unmarshal([]byte(`{"severity":"`+text+`"}`), &f); err != nil || f.Severity != want {
			t.Errorf("%s: %q, %v", text, f.Severity, err)
		}
	}
}
