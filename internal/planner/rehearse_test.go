package planner

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// TestRehearsalCounts: each group keeps at least one VM plus one for each growth, further VMs are limited to 16 in total,
// no group gets more VMs than in the scenario, small groups are not starved, and every growth step still adds VMs.
func TestRehearsalCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var groups []scenario.Group
		counts := map[string][]int{}
		least := 0
		for i := range rapid.IntRange(1, 24).Draw(t, "groups") {
			name := fmt.Sprint("g", i)
			groups = append(groups, scenario.Group{Name: name})
			n := rapid.IntRange(1, 400).Draw(t, "count")
			series := []int{n}
			for range rapid.IntRange(0, 3).Draw(t, "grows") {
				n += rapid.IntRange(1, 200).Draw(t, "more")
				series = append(series, n)
			}
			counts[name] = series
			least += len(series)
		}
		scaled := rehearsalCounts(groups, counts)
		total := 0
		for name, series := range counts {
			last := 0
			for _, n := range series {
				m, ok := scaled[name][n]
				if !ok || m <= last || m > n {
					t.Fatalf("%s: %v becomes %v", name, series, scaled[name])
				}
				last = m
			}
			total += last
		}
		if total > max(rehearsalVMsMax, least) {
			t.Fatalf("%d VMs, at most %d", total, max(rehearsalVMsMax, least))
		}
		checkFair(t, counts, scaled, total)
	})
}

func checkFair(t *rapid.T, counts map[string][]int, scaled map[string]map[int]int, total int) {
	full := 0
	final := func(name string) int { return scaled[name][slices.Max(counts[name])] }
	for _, series := range counts {
		full += slices.Max(series)
	}
	if total < min(full, rehearsalVMsMax) {
		t.Fatalf("only %d of %d VMs", total, min(full, rehearsalVMsMax))
	}
	for a := range counts {
		for b := range counts {
			short := final(a) < slices.Max(counts[a])
			if short && final(b) > len(counts[b]) && final(b) > final(a)+1 {
				t.Fatalf("%s has %d VMs of %d while %s has %d", a, final(a), slices.Max(counts[a]), b, final(b))
			}
		}
	}
}

func TestDeviceNames(t *testing.T) {
	for i, want := range map[int]string{0: "/dev/sdb", 1: "/dev/sdc", 24: "/dev/sdz", 25: "/dev/sdaa", 50: "/dev/sdaz", 51: "/dev/sdba"} {
		if got := "/dev/" + target.DiskName(i+1); got != want {
			t.Errorf("disk %d is %s, want %s", i, got, want)
		}
	}
}

// VM names are file and host names, whatever a group is called, and no two VMs share one.
func TestVMNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var groups []scenario.Group
		for i, name := range rapid.SliceOfNDistinct(rapid.StringN(1, 6, 18), 1, 8, rapid.ID[string]).Draw(t, "names") {
			groups = append(groups, scenario.Group{Name: name, PerNode: i})
		}
		seen := map[string]bool{}
		for _, prefix := range namePrefixes(groups) {
			for i := range 3 {
				name := plan.VMName(prefix, i)
				if seen[name] {
					t.Fatalf("two VMs are called %q", name)
				}
				seen[name] = true
				for _, r := range name {
					if !(r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
						t.Fatalf("name %q", name)
					}
				}
			}
		}
	})
}

func TestPlacementDealsInTurn(t *testing.T) {
	nodes := []int{2, 0, 3}
	for ordinal, want := range []int{2, 0, 3, 2, 0, 3, 2} {
		if got := plan.Placement(ordinal, nodes); got != want {
			t.Errorf("VM %d is on node %d, want %d", ordinal, got, want)
		}
	}
}
