package nutanix

import (
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
)

func TestContract(t *testing.T) {
	t.Parallel() // it waits for BMCs most of the time
	if testing.Short() {
		t.Skip("agents start, and nodes lose power")
	}
	// HA would restart VMs of a node that the contract cuts.
	r := newRig(t, prism.Options{State: state.Options{NoHA: true, HADelay: 50 * time.Millisecond}})
	r.withBMCs(t)
	r.State.SetClock(3 * time.Hour)
	targettest.Run(t, targettest.Harness{
		Open: func(t *testing.T) target.Target {
			if strings.HasSuffix(t.Name(), "/dial") {
				return r.open(t, r.authority)
			}
			return r.open(t, nil)
		},
		Reopen:    func(t *testing.T, _ target.Target) target.Target { return r.open(t, nil) },
		Greet:     greet,
		WriteDisk: r.writeDisk,
		ReadDisk:  r.readDisk,
		Leftovers: func(*testing.T, target.Target) []string { return r.leftovers() },
		Uncounted: []string{"NetReceived.Avg.KilobytesPerSecond", "NetTransmitted.Avg.KilobytesPerSecond"},
	})
}
