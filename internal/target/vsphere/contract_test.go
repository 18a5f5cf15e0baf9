package vsphere

import (
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// The simulated vCenter has no data on disks, so that the contents of clones are not tested here.
func TestContract(t *testing.T) {
	r := newRig(t)
	r.withBMCs(t)
	open := func(t *testing.T) target.Target {
		v := r.open(t)
		v.(target.NodeLimiter).LimitNodesOff(1)
		v.(powered).power.bmcs.Tune(bmc.Options{Poll: 20 * time.Millisecond, Settle: 100 * time.Millisecond})
		return v
	}
	targettest.Run(t, targettest.Harness{
		Open:      open,
		Reopen:    func(t *testing.T, _ target.Target) target.Target { return open(t) },
		Greet:     greet,
		Leftovers: func(t *testing.T, _ target.Target) []string { return r.leftovers(t) },
	})
}
