package traps

import (
	"container/heap"
	"fmt"
	"math/rand/v2"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/stat"
)

const (
	second      = int64(1e9)
	millisecond = int64(1e6)
)

// storage is scripted: it says how long operation n takes that is submitted at a time (on the axis of its load), and its error.
type storage func(n uint64, at int64) (nanos int64, fault string)

// fast storage takes 0.5 ms and a little more, without a trend. Its seed is fixed.
func fast() storage {
	random := rand.New(rand.NewPCG(3, 5))
	return func(uint64, int64) (int64, string) { return 500_000 + int64(50_000*random.ExpFloat64()), "" }
}

// slower takes as long as fast, times a factor that depends on the time.
func slower(factor func(at int64) float64) storage {
	s := fast()
	return func(n uint64, at int64) (int64, string) {
		nanos, fault := s(n, at)
		return int64(float64(nanos) * factor(at)), fault
	}
}

// slots are the places of a queue by the time at which they are free.
type slots []int64

func (s slots) Len() int           { return len(s) }
func (s slots) Less(i, j int) bool { return s[i] < s[j] }
func (s slots) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slots) Push(x any)        { *s = append(*s, x.(int64)) }
func (s *slots) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// droppedAfter: a load with a rate drops what waited for a place for so long.
const droppedAfter = 2 * second

// drive runs the first job of a plan against scripted storage, in no time, and returns the record of one VM. It is the textbook of
// both loops: a closed one submits when a place is free, an open one when an operation is due and a place is free.
func drive(w *load.Workload, job *load.JobPlan, loop interval.Loop, seconds int, s storage) []interval.Interval {
	list := make([]interval.Interval, seconds)
	for i := range list {
		list[i] = interval.Interval{Workload: w.Name, Group: w.Group, VM: w.VM, Instance: w.Instance, Prefill: w.Prefill, Sequence: int64(i),
			StartNanos: w.StartNanos + int64(i)*second, LengthNanos: second, Final: i == seconds-1, CPUNanos: second / 20}
	}
	queue := make(slots, max(1, job.QueueDepth*job.Clones))
	heap.Init(&queue)
	pacer := load.NewPacer(0, max(1, job.RateIOPS), !job.Linear, uint64(w.Ordinal)+1)
	end := int64(seconds) * second
	for n := uint64(0); ; n++ {
		due := queue[0]
		if loop != interval.LoopClosed {
			due = pacer.Next()
			pacer.Advance(1)
		}
		submitted := max(due, queue[0])
		if due >= end || loop == interval.LoopClosed && submitted >= end {
			break
		}
		if loop == interval.LoopOpen {
			list[due/second].Due++
			for i := due / second; i < min(submitted, end)/second && submitted-due <= droppedAfter; i++ {
				list[i].Backlog++
			}
			if submitted-due > droppedAfter {
				list[due/second].NotIssued++
				continue
			}
		}
		nanos, fault := s(n, submitted)
		queue[0] = submitted + nanos
		heap.Fix(&queue, 0)
		if submitted+nanos < end {
			count(&list[(submitted+nanos)/second], job, loop, uint64(nanos), uint64(submitted+nanos-due), fault)
		}
	}
	return list
}

// count adds one operation that ended.
func count(iv *interval.Interval, job *load.JobPlan, loop interval.Loop, service, response uint64, fault string) {
	t := &iv.Directions[interval.Read]
	if !job.Reads {
		t = &iv.Directions[interval.Write]
	}
	if fault != "" {
		if t.Errors == nil {
			t.Errors = map[string]uint64{}
		}
		t.Errors[fault]++
		return
	}
	if t.Service == nil {
		t.Service = &stat.Histogram{}
	}
	t.Operations, t.Bytes = t.Operations+1, t.Bytes+uint64(job.BlockMax)
	t.Service.Record(service)
	if loop == interval.LoopOpen {
		if t.Response == nil {
			t.Response = &stat.Histogram{}
		}
		t.Response.Record(response)
	}
}

// vmName is the name of VM number i.
func vmName(i int) string { return fmt.Sprintf("g-%04d", i+1) }
