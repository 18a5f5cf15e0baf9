package planner_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/target"
)

// TestRehearsalKeepsItsBound: the least of a rehearsal is one block per extent, 8 KiB on two disks of four VMs here. At
// that size it fits, and one byte below it is refused with the size that works.
func TestRehearsalKeepsItsBound(t *testing.T) {
	const least = 4 * 2 * 8192
	l := newLab(t, 4)
	inventory, err := l.fake.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sc := plannertest.Load(t, plannertest.Head+plannertest.Deployed+"run:\n  - workload.Start: {workload_name: Load, runtime_secs: 60}\n")
	for _, c := range []struct {
		bound, free int64
		hint        string // "": it fits
	}{
		{bound: 1 << 30},
		{bound: 64 * least}, {bound: 64*least - 1}, {bound: 2*least + 1}, {bound: least + 1}, {bound: least},
		{bound: least - 1, hint: "--rehearse-size 64KiB"},
		{bound: 1, hint: "--rehearse-size 64KiB"},
		{bound: 1 << 30, free: 4 * least},
		{bound: 1 << 30, free: 4*least - 4, hint: "free some space"},
	} {
		inventory.FreeBytes, inventory.TotalBytes = c.free, 0
		plan, err := planner.Compile(sc, inventory, target.Capabilities(l.fake), plannertest.Catalog(),
			planner.Options{Rehearse: 10 * time.Second, RehearseBytes: c.bound})
		if err != nil {
			t.Fatal(err)
		}
		err = planner.Preflight(plan)
		var told *diag.Error
		switch {
		case c.hint == "":
			if err != nil || plan.Footprint.Bytes() > c.bound {
				t.Errorf("bound %d: %d bytes are touched, preflight: %v", c.bound, plan.Footprint.Bytes(), err)
			}
		case !errors.As(err, &told) || told.Exit != diag.ExitUnavailable || !strings.Contains(told.Message, "at least 64 KiB") ||
			!strings.Contains(told.Hint, c.hint):
			t.Errorf("bound %d, %d free: preflight: %v", c.bound, c.free, err)
		}
		if factor := plan.Rehearsal.SizeFactor["Workers"]; factor < 1e-6 {
			t.Errorf("bound %d: sizes × %g", c.bound, factor)
		}
	}
}
