package finding

import "testing"

func TestExitCodeTakesTheWorst(t *testing.T) {
	info, unknown, fail := Finding{Severity: Info}, Finding{Severity: Unknown}, Finding{Severity: Fail}
	for _, c := range []struct {
		all  []Finding
		want int
	}{
		{nil, 0}, {[]Finding{info, {Severity: Warning}}, 0}, {[]Finding{info, unknown, info}, 3}, {[]Finding{unknown, fail}, 1}, {[]Finding{fail, unknown}, 1},
	} {
		if got := ExitCode(c.all); got != c.want {
			t.Errorf("ExitCode(%v) = %d, want %d", c.all, got, c.want)
		}
	}
}
