package wire

import (
	"testing"

	"github.com/braggdev/bragg/internal/diag"
)

// An exit code that a hostile agent claims cannot turn a failure into success.
func TestHostileExitCode(t *testing.T) {
	for _, exit := range []int{0, -1, 256, 1 << 20} {
		err := (&Error{Wire: diag.Wire{Message: "no", Exit: exit}}).Err()
		if diag.ExitCode(err) != diag.ExitInternal {
			t.Errorf("exit code %d became %d", exit, diag.ExitCode(err))
		}
	}
}
