package ioengine_test

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
)

// The centre of a distribution is where its hottest block lies, on both sides of pareto's 0.5.
func TestCentre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		distribution string
		offset       int64
	}{
		{"zipf:1.2:0", 0}, {"zipf:1.2:0.25", 16 * mib}, {"zipf:1.2:1", 0}, {"pareto:0.1:0.5", 32 * mib}, {"pareto:0.99:0.75", 48 * mib},
	} {
		all := operations(t, job("rw=randread bs=4k io_size=64m random_distribution="+c.distribution), 1<<20)
		r := dryRuns{name: c.distribution, fio: []ioengine.Operation{{Offset: c.offset}}, ours: all}
		sameHottest(t, &r)
	}
}

// shareBelow is the share of operations that lie before an offset.
func shareBelow(all []ioengine.Operation, offset int64) float64 {
	n := 0
	for _, o := range all {
		if o.Offset < offset {
			n++
		}
	}
	return float64(n) / float64(len(all))
}

func TestZones(t *testing.T) {
	t.Parallel()
	t.Run("each direction has its own", func(t *testing.T) {
		all := operations(t, job("rw=randrw bs=4k io_size=256m random_distribution=zoned:60/10:40/90,20/50:80/50"), 1<<20)
		byDirection := [3][]ioengine.Operation{}
		for _, o := range all {
			byDirection[o.Direction] = append(byDirection[o.Direction], o)
		}
		near(t, "reads in their first zone", shareBelow(byDirection[0], 64*mib/10), 0.60, 0.015)
		near(t, "writes in their first zone", shareBelow(byDirection[1], 32*mib), 0.20, 0.015)
	})
	t.Run("a zone is cut at the end of the region", func(t *testing.T) {
		all := operations(t, job("rw=randread bs=4k io_size=64m random_distribution=zoned_abs:60/8m:40/100g"), 1<<20)
		near(t, "first zone", shareBelow(all, 8*mib), 0.60, 0.015)
	})
	t.Run("a zone without a size is the rest", func(t *testing.T) {
		all := operations(t, job("rw=randread bs=4k io_size=64m random_distribution=zoned_abs:60:40/16m"), 1<<20)
		near(t, "first zone", shareBelow(all, 48*mib), 0.60, 0.015)
	})
	t.Run("large blocks at the end of the region stay in the last zone", func(t *testing.T) {
		all := operations(t, job("rw=randread bssplit=4k/50:1m/50 norandommap io_size=4g random_distribution=zoned:0/50:50/49:50/1"), 1<<20)
		if share := shareBelow(all, 32*mib); share > 0 {
			t.Errorf("%.3f of the operations lie in a zone without accesses", share)
		}
	})
	t.Run("a rehearsal has smaller zones", func(t *testing.T) {
		w := job("rw=randread bs=4k size=64m io_size=64m random_distribution=zoned_abs:60/16m:40/48m")
		w.Scale = load.Scale{Factor: 0.25, BlocksMin: 64}
		all := operations(t, w, 1<<20)
		near(t, "first zone", shareBelow(all, 4*mib), 0.60, 0.03)
	})
	t.Run("a zone behind the end is refused", func(t *testing.T) {
		_, err := ioengine.New().Plan(job("rw=randread bs=4k size=8m random_distribution=zoned_abs:60/8m:40/8m"))
		if err == nil || !strings.Contains(err.Error(), "behind the end of the region of 8 MiB") {
			t.Error(err)
		}
		if _, err := ioengine.New().Plan(job("rw=randread bs=4k size=8m random_distribution=zoned_abs:100/8m:0/8m")); err != nil {
			t.Error(err)
		}
	})
}
