package ioengine_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
)

const mib = 1 << 20

// job makes a workload on two devices of 64 MiB from options of one job, "rw=randread bs=4k".
func job(options string) load.Workload {
	text := "[job]\nfilename=/dev/sdb\n" + strings.ReplaceAll(options, " ", "\n") + "\n"
	return load.Workload{
		Name: "w", Group: "g", VM: "g-0001", Instance: 1, Seed: 7, ConfigName: "job.fio", Config: text,
		Devices: []load.Device{
			{Name: "/dev/sdb", Path: "sdb", SizeBytes: 64 * mib}, {Name: "/dev/sdc", Path: "sdc", SizeBytes: 64 * mib},
		},
	}
}

// operations returns at most limit operations of each clone.
func operations(t testing.TB, w load.Workload, limit int) []ioengine.Operation {
	t.Helper()
	var all []ioengine.Operation
	clone, count := -1, 0
	err := ioengine.New().Operations(w, func(o ioengine.Operation) bool {
		if o.Clone != clone {
			clone, count = o.Clone, 0
		}
		all = append(all, o)
		count++
		return count < limit
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sequentialShare is the share of operations that begin where the one before of the same direction ended.
func sequentialShare(all []ioengine.Operation) float64 {
	var last [3]int64
	n := 0
	for _, o := range all {
		if o.Offset == last[o.Direction] {
			n++
		}
		last[o.Direction] = o.Offset + o.Size
	}
	return float64(n) / float64(len(all))
}

func sizeShares(all []ioengine.Operation) map[int64]float64 {
	shares := map[int64]float64{}
	for _, o := range all {
		shares[o.Size] += 1 / float64(len(all))
	}
	return shares
}

func distinct(all []ioengine.Operation) int {
	seen := map[string]bool{}
	for _, o := range all {
		seen[fmt.Sprint(o.Device, o.Offset)] = true
	}
	return len(seen)
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: %.4f, want %.4f ± %.4f", what, got, want, tolerance)
	}
}

// What fio's manual says and fio 3.33 does, where that is what a reader of the job file expects.
func TestShapes(t *testing.T) {
	t.Parallel()
	t.Run("a random map touches every block once per pass", func(t *testing.T) {
		all := operations(t, job("rw=randread bs=4k loops=2"), 1<<20)
		if len(all) != 2*16384 || distinct(all[:16384]) != 16384 || distinct(all[16384:]) != 16384 {
			t.Errorf("%d operations, %d and %d blocks", len(all), distinct(all[:16384]), distinct(all[16384:]))
		}
		if slices.Equal(all[:16384], all[16384:]) {
			t.Error("both passes have one order")
		}
	})
	t.Run("norandommap draws freely", func(t *testing.T) {
		all := operations(t, job("rw=randread bs=4k norandommap"), 1<<20)
		near(t, "blocks touched", float64(distinct(all))/16384, 1-1/math.E, 0.012)
	})
	t.Run("a mixed job shares one map", func(t *testing.T) {
		all := operations(t, job("rw=randrw bs=4k rwmixread=70"), 1<<20)
		if len(all) != 16384 || distinct(all) != 16384 {
			t.Errorf("%d operations on %d blocks", len(all), distinct(all))
		}
		reads := 0
		for _, o := range all {
			if o.Direction == interval.Read {
				reads++
			}
		}
		near(t, "reads", float64(reads)/16384, 0.70, 0.015)
	})
	t.Run("percentage_random", func(t *testing.T) {
		all := operations(t, job("rw=randwrite bs=4k norandommap percentage_random=10"), 1<<20)
		near(t, "sequential", sequentialShare(all), 0.90, 0.01)
	})
	t.Run("randread:8", func(t *testing.T) {
		all := operations(t, job("rw=randread:8 bs=4k norandommap"), 1<<20)
		near(t, "sequential", sequentialShare(all), 0.875, 0.002)
	})
	t.Run("rw=read:-8k goes backwards", func(t *testing.T) {
		all := operations(t, job("rw=read:-8k bs=4k size=64k"), 1<<20)
		if len(all) != 16 || all[0].Offset != 60<<10 || all[1].Offset != 56<<10 || all[15].Offset != 0 {
			t.Error(all)
		}
	})
	t.Run("read:12k leaves gaps", func(t *testing.T) {
		all := operations(t, job("rw=read:12k bs=4k number_ios=4"), 1<<20)
		if len(all) != 4 || all[3].Offset != 48<<10 {
			t.Error(all)
		}
	})
	t.Run("pareto and zipf have hot blocks", func(t *testing.T) {
		all := operations(t, job("rw=randread bs=4k random_distribution=pareto:0.2 io_size=256m"), 1<<20)
		near(t, "pareto: hottest 20 %", hottest(all, 16384/5), 0.828, 0.015)
		near(t, "pareto: hottest 1 %", hottest(all, 164), 0.530, 0.015)
		all = operations(t, job("rw=randread bs=4k random_distribution=zipf:1.2 io_size=256m"), 1<<20)
		near(t, "zipf 1.2: hottest 1 %", hottest(all, 164), 0.785, 0.02)
		all = operations(t, job("rw=randread bs=4k random_distribution=zipf:0.8 io_size=256m"), 1<<20)
		near(t, "zipf 0.8: hottest 10 %", hottest(all, 1638), 0.60, 0.03)
	})
}

// hottest returns the share of operations that go to the n blocks that are touched most.
func hottest(all []ioengine.Operation, n int) float64 {
	counts := map[int64]int{}
	for _, o := range all {
		counts[o.Offset]++
	}
	var sorted []int
	for _, c := range counts {
		sorted = append(sorted, c)
	}
	slices.Sort(sorted)
	sum := 0
	for _, c := range sorted[max(0, len(sorted)-n):] {
		sum += c
	}
	return float64(sum) / float64(len(all))
}

func TestBlockSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options string
		want    map[int64]float64
	}{
		{"bsrange=4k-16k norandommap", map[int64]float64{4096: .25, 8192: .25, 12288: .25, 16384: .25}},
		{"bssplit=8k/30:4k/30 norandommap", map[int64]float64{4096: .70, 8192: .30}},
		{"bssplit=8k/0:4k/30 norandommap", map[int64]float64{4096: .30, 8192: .70}},
		{"bssplit=4k/50:6k/50 norandommap", map[int64]float64{4096: 1}},
		{"bssplit=8k/90:32k/10 bs=1m norandommap", map[int64]float64{8192: .90, 32768: .10}},
		// With a map fio cuts operations where blocks were done before; here the intended shares hold.
		{"bssplit=4k/50:64k/50", map[int64]float64{4096: .50, 65536: .50}},
		{"bssplit=4k/60:12k/30:32k/10", map[int64]float64{4096: .60, 12288: .30, 32768: .10}},
	} {
		all := operations(t, job("rw=randread io_size=1g "+c.options), 20000)
		got := sizeShares(all)
		if len(got) != len(c.want) {
			t.Errorf("%s: sizes %v", c.options, got)
		}
		for size, share := range c.want {
			near(t, fmt.Sprintf("%s: share of %d", c.options, size), got[size], share, 0.02)
		}
	}
}

func TestRegions(t *testing.T) {
	t.Parallel()
	span := func(all []ioengine.Operation) (low, high int64) {
		low = math.MaxInt64
		for _, o := range all {
			low, high = min(low, o.Offset), max(high, o.Offset+o.Size)
		}
		return low, high
	}
	for _, c := range []struct {
		options   string
		low, high int64
		count     int
	}{
		{"rw=randread bs=4k offset=25% size=50%", 16 * mib, 48 * mib, 8192},
		{"rw=read bs=64k io_size=3m size=1m", 0, mib, 48},
		{"rw=read bs=64k size=1m loops=2", 0, mib, 32},
		{"rw=read bs=64k number_ios=5", 0, 5 << 16, 5},
		{"rw=read bs=64k size=1000k", 0, 15 << 16, 15},
		{"rw=randread bs=64k size=1000k", 0, 15 << 16, 15},
		{"rw=write bs=1m filesize=32m size=4m zonesize=1m zoneskip=7m", 0, 25 * mib, 4},
		{"rw=read bs=1m zonemode=strided zonesize=1m zoneskip=7m size=64m io_size=9m", 0, 57 * mib, 9},
		{"rw=read bs=1m size=128m", 0, 64 * mib, 64},
		{"rw=read bs=1m offset=32m size=64m", 32 * mib, 64 * mib, 32},
	} {
		all := operations(t, job(c.options), 1<<20)
		if low, high := span(all); len(all) != c.count || low != c.low || high != c.high {
			t.Errorf("%s: %d operations from %d to %d; want %d, %d, %d", c.options, len(all), low, high, c.count, c.low, c.high)
		}
	}
	t.Run("strided windows", func(t *testing.T) {
		all := operations(t, job("rw=randread bs=64k zonemode=strided zonesize=1m zoneskip=7m norandommap io_size=9m"), 1<<20)
		for i, o := range all {
			if window := int64(i/16%8) * 8 * mib; o.Offset < window || o.Offset+o.Size > window+mib {
				t.Fatalf("operation %d at %d, outside of the window at %d", i, o.Offset, window)
			}
		}
	})
	t.Run("clones and devices", func(t *testing.T) {
		all := operations(t, job("rw=write bs=1m numjobs=3 offset_increment=4m size=1m"), 1<<20)
		if len(all) != 3 || all[1].Offset != 4*mib || all[2].Offset != 8*mib {
			t.Error(all)
		}
		all = operations(t, job("rw=write bs=1m size=4m filename=/dev/sdc"), 1<<20)
		var order []string
		for _, o := range all {
			order = append(order, fmt.Sprintf("%s@%d", o.Device[5:], o.Offset/mib))
		}
		if got := strings.Join(order, " "); got != "sdb@0 sdc@0 sdb@1 sdc@1" {
			t.Error(got)
		}
	})
}

// Every block of the region is touched exactly once by a pass over a random map, whatever the sizes.
func TestRandomMapTilesTheRegion(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var splits []string
		for range rapid.IntRange(1, 5).Draw(rt, "sizes") {
			size := rapid.SampledFrom([]int{4, 8, 12, 20, 28, 64, 128}).Draw(rt, "KiB")
			splits = append(splits, fmt.Sprintf("%dk/%d", size, rapid.IntRange(1, 60).Draw(rt, "percent")))
		}
		region := rapid.IntRange(32, 2048).Draw(rt, "blocks") * 4096
		w := job(fmt.Sprintf("rw=randwrite bssplit=%s size=%d offset=64k", strings.Join(splits, ":"), region))
		w.Seed = rapid.Uint64().Draw(rt, "seed")
		if _, err := ioengine.New().Plan(w); err != nil {
			rt.Skip(err)
		}
		all := operations(t, w, 1<<20)
		slices.SortFunc(all, func(a, b ioengine.Operation) int { return int(a.Offset - b.Offset) })
		at, smallest := int64(64<<10), all[0].Size
		for _, o := range all {
			smallest = min(smallest, o.Size)
			if o.Offset != at {
				rt.Fatalf("gap or overlap at %d: next operation at %d", at, o.Offset)
			}
			at += o.Size
		}
		if rest := 64<<10 + int64(region) - at; rest < 0 || rest >= smallest {
			rt.Fatalf("%d bytes of the region were not touched", rest)
		}
	})
}

// Operations stay in the region, aligned, for every combination of what shapes them.
func TestOperationsStayInTheirExtents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(rt, name) }
		options := "rw=" + pick("rw", "read", "write", "randread", "randwrite", "randrw", "rw", "randread:4", "write:20k", "read:-12k") +
			" " + pick("bs", "bs=4k", "bs=20k", "bsrange=4k-24k", "bssplit=4k/20:16k/80", "bs=8k,4k") +
			" " + pick("place", "", "norandommap", "percentage_random=30", "random_distribution=zipf:0.9", "random_distribution=pareto:0.3",
			"random_distribution=normal:20:0.9", "random_distribution=zoned:50/10:50/90", "random_distribution=zoned_abs:30/100k:70/200k", "ba=8k") +
			" " + pick("extent", "size=1m", "size=1m offset=3m", "filesize=8m size=1m", "filesize=8m size=2m zonesize=512k zoneskip=1m",
			"zonemode=strided zonesize=256k zonerange=512k zoneskip=64k size=4m", "size=10% offset=50%", "numjobs=2 size=1m offset_increment=2m")
		w := job(options)
		w.Seed = rapid.Uint64().Draw(rt, "seed")
		plan, err := ioengine.New().Plan(w)
		if err != nil {
			rt.Fatalf("%s: %v", options, err)
		}
		for _, o := range operations(t, w, 500) {
			inside := slices.ContainsFunc(plan.Extents, func(e extent.Extent) bool {
				return e.Device == o.Device && o.Offset >= e.Offset && o.Offset+o.Size <= e.Offset+e.Length
			})
			if !inside || o.Offset%4096 != 0 || o.Size <= 0 {
				rt.Fatalf("%s: operation %v lies outside of %v", options, o, plan.Extents)
			}
		}
	})
}

func TestRepeatsAreEqualAndClonesAreNot(t *testing.T) {
	t.Parallel()
	w := job("rw=randrw bssplit=4k/50:8k/50 norandommap rate_iops=1000,500 rate_process=poisson time_based numjobs=2")
	w.Runtime = time.Second
	first := operations(t, w, 1000)
	if !slices.Equal(first, operations(t, w, 1000)) {
		t.Error("a repeat differs")
	}
	places := func(all []ioengine.Operation) (offsets []int64) {
		for _, o := range all {
			offsets = append(offsets, o.Offset)
		}
		return offsets
	}
	for name, change := range map[string]func(*load.Workload){
		"seed": func(w *load.Workload) { w.Seed++ }, "VM": func(w *load.Workload) { w.Ordinal++ },
		"workload": func(w *load.Workload) { w.Number++ }, "start": func(w *load.Workload) { w.Instance++ },
	} {
		other := w
		change(&other)
		if slices.Equal(places(first)[:100], places(operations(t, other, 1000))[:100]) {
			t.Errorf("another %s has the same offsets", name)
		}
	}
	other := w
	other.Name += "2"
	if !slices.Equal(places(first), places(operations(t, other, 1000))) {
		t.Error("offsets depend on the name of the workload")
	}
	if slices.Equal(places(first)[:100], places(first[len(first)/2:])[:100]) {
		t.Error("two clones have the same offsets")
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options       string
		reads, writes float64
	}{
		{"rw=randread rate_iops=1000 bs=4k", 1000, 0},
		{"rw=randread rate_iops=1000 bsrange=4k-16k norandommap", 1000, 0},
		{"rw=randread rate_iops=1000 bssplit=8k/90:32k/10 norandommap", 1000, 0},
		{"rw=randrw rate_iops=1000,250 bs=4k", 1000, 250},
		{"rw=randrw rate_iops=500 bs=4k", 500, 500},
		{"rw=randwrite rate=,500k bs=4k", 0, 125},
		{"rw=randread rate_iops=1000 bs=4k numjobs=4", 4000, 0},
	} {
		w := job(c.options + " time_based")
		w.Runtime = 10 * time.Second
		var counts [3]float64
		for _, o := range operations(t, w, 1<<20) {
			counts[o.Direction] += 0.1
		}
		near(t, c.options+": reads", counts[0], c.reads, c.reads/1000)
		near(t, c.options+": writes", counts[1], c.writes, c.writes/1000)
	}
}

// The plan's extents are those that package fiojob finds on its own.
func TestExtentsAgreeWithTheJobFile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(rt, name) }
		options := "rw=" + pick("rw", "read", "randwrite", "randrw") + " " + pick("bs", "bs=4k", "bs=24k", "bssplit=8k/90:32k/10") + " " +
			pick("size", "", "size=5m", "size=33%", "size=5m filename=/dev/sdc", "filesize=9m size=3m", "size=1m io_size=3m") + " " +
			pick("offset", "", "offset=3m", "offset=7%") + " " + pick("clones", "", "numjobs=3", "numjobs=3 offset_increment=2m")
		w := job(options)
		plan, err := ioengine.New().Plan(w)
		if err != nil {
			rt.Fatalf("%s: %v", options, err)
		}
		file, issues := fiojob.Parse(w.ConfigName, w.Config, fiojob.Options{})
		if err := issues.Err(); err != nil {
			rt.Fatal(err)
		}
		size := func(string) (int64, bool) { return 64 * mib, true }
		touched, err := region.Touched(region.Resolve(file, size), size)
		if err != nil {
			rt.Fatalf("%s: %v", options, err)
		}
		var want []extent.Extent
		for _, e := range touched {
			want = append(want, extent.Extent{Device: e.Device, Offset: e.Offset, Length: e.Length, Writes: e.Writes})
		}
		slices.SortFunc(want, func(a, b extent.Extent) int { return strings.Compare(a.Device, b.Device)*4 + int(a.Offset-b.Offset) })
		if !slices.Equal(plan.Extents, want) {
			rt.Fatalf("%s: plan %+v, job file %+v", options, plan.Extents, want)
		}
	})
}

// thinktime_iotime counts from the begin of the pause before, and at first from the start, as in fio: a rate of 1,000 with pauses
// from 0.5 to 0.7 s and from 1 s on does all that is due in one second.
func TestBurstsAreThoseOfFio(t *testing.T) {
	t.Parallel()
	w := job("rw=read bs=4k size=64m time_based rate_iops=1000 thinktime=200ms thinktime_iotime=300ms")
	w.Runtime = time.Second
	if n := len(operations(t, w, 4000)); n < 999 || n > 1001 {
		t.Errorf("%d operations, fio does 1,001", n)
	}
}
