package wire

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
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

func TestHostileOutputs(t *testing.T) {
	for line, good := range map[string]bool{
		`{"end": {"next": 1, "outputs": [{"name": "a.txt", "text": "b"}]}}`:                                                  true,
		`{"end": {"next": 1, "outputs": [{"name": "../a", "text": "b"}]}}`:                                                   false,
		`{"end": {"next": 1, "outputs": [{"name": "a.txt", "text": "` + strings.Repeat("x", load.OutputBytesMax+1) + `"}]}}`: false,
		`{"end": {"next": 1, "outputs": [` + strings.Repeat(`{"name": "a"},`, load.OutputsMax) + `{"name": "a"}]}}`:          false,
	} {
		if _, err := Decode([]byte(line)); (err == nil) != good {
			t.Errorf("%.60s: %v", line, err)
		}
	}
}
