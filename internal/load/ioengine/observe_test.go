package ioengine_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
)

// counting adds up what an observer receives, and checks what must hold of every operation.
type counting struct {
	t          *testing.T
	from       int64
	last       int64
	operations [interval.DirectionCount]uint64 // that counted
	ramp       uint64
	syncs      uint64
	service    uint64
	submission uint64
	returned   uint64 // operations whose submission was measured
}

func (c *counting) Begin(measureFrom int64) { c.from = measureFrom }

func (c *counting) Completed(batch []ioengine.Completed) {
	for i := range batch {
		o := &batch[i]
		if o.Completed < c.last || o.Submitted < o.Intended || o.Completed < o.Submitted || !o.OK() {
			c.t.Errorf("wrong order of times or result: %+v after %d", o, c.last)
		}
		c.last = o.Completed
		switch {
		case o.Sync:
			c.syncs++
			continue
		case !o.Measured:
			c.ramp++
			continue
		}
		c.operations[o.Direction]++
		c.service += uint64(o.Completed - o.Submitted)
		if o.Returned != 0 {
			if o.Returned < o.Submitted || o.Returned > o.Completed {
				c.t.Errorf("a submission returned outside of its operation: %+v", o)
			}
			c.returned++
			c.submission += uint64(o.Returned - o.Submitted)
		}
	}
}

// observed runs one clone with an observer and returns it with what the engine recorded itself.
func observed(t *testing.T, options, backend string, slat bool) (*counting, interval.Interval, measuring.Account) {
	t.Helper()
	w := files(t, job(options))
	w.IntervalLength = 50 * time.Millisecond
	file, list := fiojob.Parse(w.ConfigName, w.Config, fiojob.Options{})
	if list.HasErrors() {
		t.Fatal(list.Err())
	}
	run, err := ioengine.Generator{Backend: backend}.PrepareJobs(t.Context(), w, file.Jobs())
	if err != nil {
		t.Fatal(err)
	}
	seen := &counting{t: t}
	run.Observe(func(string, int) ioengine.Observer { return seen })
	if slat {
		run.TimeSubmissions()
	}
	var sum interval.Interval
	err = run.Run(t.Context(), load.SinkFunc(func(iv interval.Interval) {
		for d := range interval.DirectionCount {
			sum.Directions[d].Add(&iv.Directions[d])
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	return seen, sum, run.Account()
}

// An observer sees what the intervals count: the same operations, the same sum of latencies, and syncs and the ramp apart.
func TestObserverSeesEveryOperation(t *testing.T) {
	for _, c := range []struct{ options, backend string }{
		{"ioengine=io_uring rw=randrw bs=4k iodepth=8 size=1m fsync=7", ""},
		{"ioengine=io_uring rw=randread bs=4k iodepth=4 size=1m rate_iops=2000 ramp_time=50ms runtime=150ms time_based", ""},
		{"ioengine=psync rw=randwrite bs=4k size=1m fdatasync=5", ""},
		{"ioengine=libaio rw=randrw bs=4k iodepth=4 size=1m", "psync"},
		{"ioengine=null rw=randrw bs=4k iodepth=16 size=1m", ""},
	} {
		seen, sum, account := observed(t, c.options, c.backend, true)
		for d := range interval.DirectionCount {
			if got, want := seen.operations[d], sum.Directions[d].Operations; got != want {
				t.Errorf("%s: %d observed, %d recorded", c.options, got, want)
			}
		}
		var service float64
		var submissions uint64
		for d := range interval.DirectionCount {
			if h := sum.Directions[d].Service; h != nil {
				service += h.Sum()
			}
			submissions += account.Submissions[d].Count()
		}
		if float64(seen.service) != service || seen.syncs != account.Syncs.Count() || seen.from == 0 {
			t.Errorf("%s: service %d and %v, syncs %d and %d, from %d", c.options, seen.service, service, seen.syncs, account.Syncs.Count(), seen.from)
		}
		if seen.returned != submissions {
			t.Errorf("%s: %d submissions observed, %d in the account", c.options, seen.returned, submissions)
		}
	}
}

// Submissions are measured where a call queues operations, for every one of them, and nowhere else.
func TestSubmissionsAreMeasuredWhereTheyMeanSomething(t *testing.T) {
	ring := "ioengine=io_uring rw=randread bs=4k iodepth=4 size=1m"
	for _, backend := range []string{"io_uring", "libaio"} {
		seen, sum, account := observed(t, ring, backend, true)
		n := sum.Directions[interval.Read].Operations
		if !works(t, backend) {
			continue
		}
		if seen.returned != n || account.Submissions[interval.Read].Count() != n || seen.submission == 0 {
			t.Errorf("%s: %d operations, %d submissions, %d ns of them", backend, n, seen.returned, seen.submission)
		}
	}
	for _, c := range []struct {
		options string
		slat    bool
	}{{ring, false}, {"ioengine=psync rw=randread bs=4k size=1m", true}, {"ioengine=null rw=randread bs=4k iodepth=4 size=1m", true}} {
		if seen, _, account := observed(t, c.options, "", c.slat); seen.returned != 0 || account.Submissions[interval.Read].Count() != 0 {
			t.Errorf("%s: %d submissions measured", c.options, seen.returned)
		}
	}
}

// works reports whether this machine lets the engine use a back end.
func works(t *testing.T, backend string) bool {
	w := files(t, job("ioengine=io_uring rw=randread bs=4k size=1m"))
	plan, err := ioengine.Generator{Backend: backend}.Plan(w)
	return err == nil && plan.Engine.String() == "native "+backend
}

// idle observes and keeps nothing.
type idle struct{ operations uint64 }

func (*idle) Begin(int64)                            {}
func (o *idle) Completed(batch []ioengine.Completed) { o.operations += uint64(len(batch)) }

// An observed load allocates nothing per operation either.
func TestNoAllocationPerObservedOperation(t *testing.T) {
	for _, options := range []string{
		"ioengine=null rw=randrw bs=4k iodepth=32 norandommap time_based runtime=400ms",
		"ioengine=io_uring rw=randread bs=4k iodepth=32 size=1m time_based runtime=400ms",
	} {
		w := files(t, job(options))
		w.IntervalLength = 50 * time.Millisecond
		file, _ := fiojob.Parse(w.ConfigName, w.Config, fiojob.Options{})
		run, err := ioengine.New().PrepareJobs(t.Context(), w, file.Jobs())
		if err != nil {
			t.Fatal(err)
		}
		seen := &idle{}
		run.Observe(func(string, int) ioengine.Observer { return seen })
		run.TimeSubmissions()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := run.Run(t.Context(), load.SinkFunc(func(interval.Interval) {})); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; seen.operations < 10_000 || n > 3000+seen.operations/1000 {
			t.Errorf("%s: %d allocations for %d operations", options, n, seen.operations)
		}
	}
}
