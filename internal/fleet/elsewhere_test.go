package fleet

import (
	"context"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/target"
)

// cutTarget does something while the power of a node is cut.
type cutTarget struct {
	*slowTarget
	target.NodePower
	during func()
}

func (c *cutTarget) PowerOffNode(context.Context, string) error {
	c.during()
	return nil
}

// A VM that the platform starts on another node, before the power cut of its own is confirmed, is not lost a second time.
func TestStartedElsewhereDuringACut(t *testing.T) {
	f, s := newSlowFleet("moves", "stays")
	f.target = &cutTarget{slowTarget: s, during: func() {
		s.change(f, "moves", func(vm *target.VM) { vm.NodeID, vm.Power = "node-2", target.PowerOn })
	}}
	var gone []string
	f.gone = func(vm target.VM) { gone = append(gone, vm.Name) }
	f.powerCuts = map[string]int{}
	runs := t.TempDir()
	tag, err := control.NewTag(runs, "run-1", nil)
	if err == nil {
		f.journal, err = control.CreateJournal(runs, control.Header{Run: "run-1", Tag: tag, Scenario: "test"}, nil, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Nodes([]target.Node{{ID: "node-1"}}).Off(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(gone, []string{"stays"}) {
		t.Errorf("connections ended: %q", gone)
	}
	for _, vm := range f.Of("") {
		if want := map[string]target.PowerState{"moves": target.PowerOn, "stays": target.PowerUnknown}[vm.Name]; vm.Power != want {
			t.Errorf("%s is %s, want %s", vm.Name, vm.Power, want)
		}
	}
}
