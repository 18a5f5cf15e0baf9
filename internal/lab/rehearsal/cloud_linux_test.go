package rehearsal

import (
	"path/filepath"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// TestDistribution carries a scenario out on clones of a distribution's cloud image, which cloud-init sets up, and through a cut of
// their power.
func TestDistribution(t *testing.T) {
	path := testreq.CloudImage(t)
	r := newRigOf(t, programs(t), map[string]string{"cloud": path})
	r.rehearse(t, rehearsal{scenario: filepath.Join("testdata", "distribution"), length: "30s", check: bothLoads,
		marks: []string{"Guests: powering off VMs", "Guests: finished powering on VMs"}}, "libvirt")
}

// bothLoads wants both VMs to have worked before they lost their power, and after.
func bothLoads(t *testing.T, rec *record) {
	off, _ := rec.step(t, "vm_group.PowerOff")
	_, on := rec.step(t, "vm_group.PowerOn")
	operations, errors := rec.done("Before", 0, off)
	working(t, "Before", operations, errors, 2)
	operations, errors = rec.done("After", on, ever)
	working(t, "After", operations, errors, 2)
}
