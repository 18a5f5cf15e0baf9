package testreq_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// TestSoakIsSkipped: what only the soak runs is skipped, not failed, where everything is required; what is missing fails there.
func TestSoakIsSkipped(t *testing.T) {
	if testing.Short() {
		t.Skip("short runs leave the soak out whatever its variables say")
	}
	const variable = "BRAGG_TEST_SOAK_VARIABLE"
	t.Setenv("BRAGG_TEST_REQUIRE", "all")
	ended := &recorder{TB: t}
	func() {
		defer func() { _ = recover() }()
		testreq.Soak(ended, variable, "why")
	}()
	if want := testreq.SoakOnly + "why (" + variable + ")"; ended.skipped != want || ended.failed {
		t.Errorf("skipped %q, failed %v, want %q", ended.skipped, ended.failed, want)
	}
	missing := &recorder{TB: t}
	func() {
		defer func() { _ = recover() }()
		testreq.Skip(missing, "no part")
	}()
	if !missing.failed {
		t.Error("a missing part is not a failure where everything is required")
	}
	t.Setenv(variable, "1h")
	if got := testreq.Soak(t, variable, "why"); got != "1h" {
		t.Errorf("the value is %q", got)
	}
}

// recorder is a test that only notes how it ends.
type recorder struct {
	testing.TB
	skipped string
	failed  bool
}

func (r *recorder) Helper() {}

func (r *recorder) Skip(args ...any) {
	r.skipped, _ = args[0].(string)
	panic("skipped")
}

func (r *recorder) Fatalf(string, ...any) {
	r.failed = true
	panic("failed")
}
