package plan_test

import (
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
)

// Groups that are scaled alike are named once, and not at all if they are all groups.
func TestRehearsalLine(t *testing.T) {
	r := result.Rehearsal{Asked: time.Minute, TimeFactor: 0.037, Nodes: [2]int{4, 4}, SizeFactor: map[string]float64{}, Counts: map[string][2]int{}}
	if got := plan.RehearsalLine(&r); got != "REHEARSAL of 1 m: times × 0.037" {
		t.Error(got)
	}
	for _, group := range []string{"a", "b", "c", "d", "e"} {
		r.SizeFactor[group], r.Counts[group] = 0.00914, [2]int{1, 1}
	}
	if got := plan.RehearsalLine(&r); got != "REHEARSAL of 1 m: times × 0.037, bytes × 0.00914" {
		t.Error(got)
	}
	r.SizeFactor["e"], r.Counts["d"], r.Counts["e"] = 1, [2]int{8, 2}, [2]int{4, 2}
	r.VCPUs, r.RAMBytes = map[string][2]int{"a": {4, 2}, "b": {4, 2}}, map[string][2]int64{"a": {4 << 30, 1 << 30}}
	r.Nodes = [2]int{4, 2}
	want := "REHEARSAL of 1 m: times × 0.037, nodes: 2 of 4, bytes of a, b, c and 1 more × 0.00914, VMs of d: 2 of 8, VMs of e: 2 of 4, " +
		"vCPUs of a and b: 2 of 4, memory of a: 1 GiB of 4 GiB"
	if got := plan.RehearsalLine(&r); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
