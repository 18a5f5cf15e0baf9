package ioengine_test

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// prioritiesSeen notes the priority of every operation by its place.
type prioritiesSeen struct {
	mu   sync.Mutex
	list []ioengine.Completed
}

func (p *prioritiesSeen) Begin(int64) {}

func (p *prioritiesSeen) Completed(batch []ioengine.Completed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, batch...)
}

// prioritized runs a job and returns its operations by direction and offset, and what its account says.
func prioritized(t *testing.T, options string) ([]ioengine.Completed, measuring.Account) {
	t.Helper()
	w := files(t, job(options))
	parsed, list := fiojob.Parse(w.ConfigName, w.Config, fiojob.Options{})
	if list.HasErrors() {
		t.Fatal(list)
	}
	run, err := ioengine.New().PrepareJobs(t.Context(), w, parsed.Jobs())
	if err != nil {
		t.Fatal(err)
	}
	seen := &prioritiesSeen{}
	run.Observe(func(string, int) ioengine.Observer { return seen })
	if err := run.Run(t.Context(), load.SinkFunc(func(interval.Interval) {})); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(seen.list, func(a, b ioengine.Completed) int {
		if a.Direction != b.Direction {
			return int(a.Direction) - int(b.Direction)
		}
		return int(a.Offset - b.Offset)
	})
	return seen.list, run.Account()
}

// The requested share of operations has the priority, the same ones whatever does them and however deep the queue is,
// and every operation's latency is counted under its priority.
func TestSharesOfPriorities(t *testing.T) {
	high, idle := thread.NewPriority(1, 0), thread.NewPriority(3, 7)
	for _, c := range []struct {
		options string
		of      func(c *ioengine.Completed) (thread.Priority, float64)
		others  thread.Priority
	}{
		{"rw=randread bs=4k size=16m cmdprio_percentage=25", func(*ioengine.Completed) (thread.Priority, float64) { return high, .25 }, 0},
		{"rw=randrw bs=4k size=16m cmdprio_percentage=30,60 cmdprio_class=1,3 cmdprio=0,7 prio=4", func(c *ioengine.Completed) (thread.Priority, float64) {
			if c.Direction == interval.Write {
				return idle, .6
			}
			return high, .3
		}, thread.NewPriority(2, 4)},
		{"rw=randwrite bssplit=4k/50:16k/50 size=32m norandommap cmdprio_bssplit=4k/10:16k/80/3/7", func(c *ioengine.Completed) (thread.Priority, float64) {
			if c.Size == 16384 {
				return idle, .8
			}
			return high, .1
		}, 0},
	} {
		type class struct {
			direction interval.Direction
			size      int64
		}
		var first []ioengine.Completed
		for _, engine := range []string{"ioengine=io_uring iodepth=16 direct=1", "ioengine=libaio iodepth=1", "ioengine=io_uring iodepth=4"} {
			list, account := prioritized(t, c.options+" "+engine)
			all, with := map[class]float64{}, map[class]float64{}
			for i := range list {
				o := &list[i]
				of := class{o.Direction, o.Size}
				all[of]++
				switch want, _ := c.of(o); o.Priority {
				case want:
					with[of]++
				case c.others:
				default:
					t.Fatalf("%s: an operation has priority %x", c.options, o.Priority)
				}
			}
			for of, n := range all {
				_, share := c.of(&ioengine.Completed{Direction: of.direction, Size: of.size})
				// Four standard deviations: the seed is fixed, so that this never comes out otherwise.
				if got := with[of] / n; math.Abs(got-share) > 4*math.Sqrt(share*(1-share)/n) {
					t.Errorf("%s: %v: %.3f of %v have the priority, want %.3f", c.options, of, got, n, share)
				}
			}
			if first == nil {
				first = list
			}
			if len(list) != len(first) {
				t.Fatalf("%s: %d operations, and %d before", c.options, len(list), len(first))
			}
			for i := range list {
				if !strings.Contains(c.options, "norandommap") && list[i].Priority != first[i].Priority {
					t.Fatalf("%s: the operation at %d has priority %x, and had %x", c.options, list[i].Offset, list[i].Priority, first[i].Priority)
				}
			}
			checkPriorityAccount(t, list, &account)
		}
	}
}

func checkPriorityAccount(t *testing.T, list []ioengine.Completed, account *measuring.Account) {
	t.Helper()
	want := map[interval.Direction]map[thread.Priority]uint64{}
	for i := range list {
		p := list[i].Priority
		if want[list[i].Direction] == nil {
			want[list[i].Direction] = map[thread.Priority]uint64{}
		}
		want[list[i].Direction][p]++
	}
	for d, list := range account.Priorities {
		for i := range list {
			l := &list[i]
			if n := want[interval.Direction(d)][l.Priority]; l.Service.Count() != n || l.Response.Count() != n {
				t.Errorf("%d latencies of priority %x in direction %d, want %d", l.Service.Count(), l.Priority, d, n)
			}
			delete(want[interval.Direction(d)], l.Priority)
		}
	}
	for d, left := range want {
		if len(left) > 0 {
			t.Errorf("direction %v: no latencies of %v", d, left)
		}
	}
}

// Where nothing takes a priority with an operation, asking for one is an error, and null has nothing to do.
func TestPrioritiesNeedAQueue(t *testing.T) {
	for engine, fine := range map[string]bool{"psync": false, "pvsync2": false, "mmap": false, "null": true, "libaio": true, "posixaio": true} {
		_, err := ioengine.New().Plan(job("rw=randread bs=4k size=1m cmdprio_percentage=10 ioengine=" + engine))
		if (err == nil) != fine {
			t.Errorf("%s: %v", engine, err)
		}
	}
}
