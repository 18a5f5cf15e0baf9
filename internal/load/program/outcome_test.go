package program_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/program"
)

// A load that was stopped fails only if its totals differ, also where the error was wrapped or concealed.
func TestOutcomeOfAStoppedLoad(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	differ := program.TotalsDiffer("recorded %d, and the program reports %d", 1, 2)
	address := program.Endpoint{"host": "db.example"}
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{t.Context(), nil, false}, {t.Context(), errors.New("killed"), true}, {t.Context(), differ, true},
		{stopped, nil, false}, {stopped, errors.New("killed"), false}, {stopped, differ, true},
		{stopped, address.ConcealError(fmt.Errorf("check db.example: %w", differ)), true},
	} {
		err := program.Outcome(c.ctx, "Load", c.err)
		if (err != nil) != c.want || err != nil && !errors.Is(err, c.err) {
			t.Errorf("stopped %v, %v: %v", c.ctx.Err() != nil, c.err, err)
		}
		if c.want && errors.Is(c.err, differ) && diag.ExitCode(err) != diag.ExitUndecided {
			t.Errorf("%v: exit code %d", err, diag.ExitCode(err))
		}
	}
}
