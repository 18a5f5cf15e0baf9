package bmc

import (
	"context"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/target"
)

// Connections to a VM that the platform starts on another node, before the BMC answers, are not ended a second time: its load
// runs there already.
func TestStartedElsewhere(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{true, false} {
		running := []string{"moves", "stays"}
		var ended [][]string
		h := &HangingUp{
			Usable:    func(context.Context, string) error { return nil },
			Running:   func(context.Context, string) []string { return slices.Clone(running) },
			HangUp:    func(vms []string, _ string) { ended = append(ended, slices.Clone(vms)) },
			Elsewhere: elsewhere,
		}
		err := h.take(t.Context(), "left", func(ctx context.Context, _ string) error {
			target.TellPowerChange(ctx, target.PowerChange{})
			running = []string{"stays"}
			return nil
		})
		want := []string{"moves", "stays"}
		if elsewhere {
			want = []string{"stays"}
		}
		if err != nil || len(ended) != 2 || len(ended[0]) != 2 || !slices.Equal(ended[1], want) {
			t.Errorf("elsewhere %t: %v, ended %q", elsewhere, err, ended)
		}
	}
}
