package rollup

import (
	"slices"
	"sort"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// placeOf returns the place of [from, to).
func (c *Cuts) placeOf(from, to int64) place {
	var p place
	p.stretch = sort.Search(len(c.AtNanos), func(i int) bool { return c.AtNanos[i] > from-borderNanos })
	p.alone = p.stretch < len(c.AtNanos) && c.AtNanos[p.stretch] < to+borderNanos
	middle := from + (to-from)/2
	for i, d := range c.Cells {
		if i < len(p.cells) {
			p.cells[i] = d.cell(middle)
		} else {
			p.alone = true // more divisions than any run has
		}
	}
	return p
}

// stream is what intervals follow each other in.
type stream struct{ workload, vm string }

// merger merges the intervals of one stream after the other.
type merger struct {
	cuts   *Cuts
	memory *memory
	out    []interval.Interval

	open  bool // the last of out may grow
	place place
	kind  kind
}

// kind is what intervals must have in common to be merged without loss.
type kind struct {
	scheduled, idle bool
	closed, due     uint8 // directions with service time only, and with response time
}

func kindOf(iv *interval.Interval) kind {
	k := kind{idle: true}
	for d := range iv.Directions {
		t := &iv.Directions[d]
		k.idle = k.idle && t.Operations == 0
		switch {
		case t.Response != nil:
			k.due |= 1 << d
			k.scheduled = true
		case t.Service != nil:
			k.closed |= 1 << d
		}
	}
	return k
}

func (k kind) joins(o kind) bool {
	return k.scheduled == o.scheduled && k.idle == o.idle && k.closed&o.due == 0 && k.due&o.closed == 0
}

// add merges an interval into the last one, or begins another. An error means that a histogram is not what its text promised.
func (m *merger) add(iv *interval.Interval) error {
	k, p := kindOf(iv), m.cuts.placeOf(iv.StartNanos, iv.EndNanos())
	alone := p.alone || iv.Final || iv.Waiting != nil || len(iv.Early) > 0 || iv.LengthNanos <= 0
	if m.open && !alone && p == m.place {
		if last := &m.out[len(m.out)-1]; k.joins(m.kind) && follows(last, iv) {
			m.kind.closed, m.kind.due = m.kind.closed|k.closed, m.kind.due|k.due
			return m.join(last, iv)
		}
	}
	m.out = append(m.out, interval.Interval{
		Workload: iv.Workload, Group: iv.Group, VM: iv.VM, Instance: iv.Instance, Prefill: iv.Prefill, Sequence: iv.Sequence,
		StartNanos: iv.StartNanos, Final: iv.Final, Progress: interval.Progress{Early: iv.Early},
	})
	m.open, m.kind, m.place = !alone, k, p
	last := &m.out[len(m.out)-1]
	if err := m.unfold(&last.Waiting, iv.Waiting); err != nil {
		return err
	}
	return m.join(last, iv)
}

func follows(last, iv *interval.Interval) bool {
	return iv.StartNanos == last.EndNanos() && iv.Instance == last.Instance && iv.Prefill == last.Prefill && iv.Group == last.Group
}

func (m *merger) join(into, iv *interval.Interval) error {
	for d := range iv.Directions {
		t, o := &into.Directions[d], &iv.Directions[d]
		t.Operations += o.Operations
		t.Bytes += o.Bytes
		for class, n := range o.Errors {
			if t.Errors == nil {
				t.Errors = map[string]uint64{}
			}
			t.Errors[class] += n
		}
		for _, h := range [...]struct {
			into **stat.Histogram
			from *stat.Histogram
		}{{&t.Service, o.Service}, {&t.Response, o.Response}, {&t.Failed, o.Failed}} {
			if err := m.unfold(h.into, h.from); err != nil {
				return err
			}
		}
	}
	into.LengthNanos += iv.LengthNanos
	into.Due += iv.Due
	into.NotIssued += iv.NotIssued
	into.Backlog, into.InFlight = iv.Backlog, iv.InFlight
	into.StalledNanos += iv.StalledNanos
	into.CPUNanos += iv.CPUNanos
	return nil
}

func (m *merger) unfold(into **stat.Histogram, from *stat.Histogram) error {
	if from == nil {
		return nil
	}
	if *into == nil {
		*into = m.memory.histogram()
	}
	return (*into).Unfold(from)
}

// folded are intervals as they were read. An interval with a histogram that is not what its text promised is read again, without folding.
type folded struct {
	each  []interval.Interval
	again func(i int) (interval.Interval, error)
	bad   map[int]bool
}

func (f *folded) at(i int) (*interval.Interval, error) {
	if !f.bad[i] {
		return &f.each[i], nil
	}
	iv, err := f.again(i)
	return &iv, err
}

// merge merges intervals stream by stream, so that the histograms that grow stay in the cache of the processor. flush is called between
// streams when memory is large.
func (m *merger) merge(f *folded, flush func() error) error {
	for _, of := range streams(f.each) {
		start := len(m.out)
		if err := m.stream(of, f); err != nil {
			m.out = m.out[:start]
			for _, i := range of {
				f.bad[i] = true
			}
			if err := m.stream(of, f); err != nil {
				return err
			}
		}
		if m.memory.large() {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *merger) stream(of []int, f *folded) error {
	m.open = false
	for _, i := range of {
		iv, err := f.at(i)
		if err == nil {
			err = m.add(iv)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// second is one second of a load on all VMs.
type second struct {
	workload string
	instance int
	number   int64
}

// seconds adds up the response times of all VMs in each second.
func (f *folded) seconds(m *memory) error {
	found := map[second]int{}
	for i := range f.each {
		iv, err := f.at(i)
		if err != nil {
			return err
		}
		if iv.Prefill || iv.StartNanos < 0 || iv.LengthNanos <= 0 {
			continue
		}
		key := second{iv.Workload, iv.Instance, (iv.StartNanos + iv.LengthNanos/2) / 1e9}
		at, known := found[key]
		if !known {
			at = len(m.seconds)
			found[key] = at
			m.seconds = append(m.seconds, interval.Interval{Workload: iv.Workload, Instance: iv.Instance, StartNanos: key.number * 1e9, LengthNanos: 1e9})
			m.seconds[at].Directions[0].Service = m.histogram()
		}
		for d := range iv.Directions {
			if t := &iv.Directions[d]; !t.Late() {
				if err := m.seconds[at].Directions[0].Service.Unfold(t.ResponseOrService()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// streams lists the numbers of the intervals of each stream, in the order in which streams begin.
func streams(each []interval.Interval) [][]int {
	number, counts, at := map[stream]int{}, []int{}, make([]int, len(each))
	for i := range each {
		key := stream{each[i].Workload, each[i].VM}
		n, known := number[key]
		if !known {
			n = len(counts)
			number[key], counts = n, append(counts, 0)
		}
		at[i] = n
		counts[n]++
	}
	lists := make([][]int, len(counts))
	rest := make([]int, len(each))
	for n, count := range counts {
		lists[n], rest = rest[:0:count], rest[count:]
	}
	for i, n := range at {
		lists[n] = append(lists[n], i)
	}
	return lists
}

// whole reports whether no cut is within an interval or close to it.
func (c *Cuts) whole(iv *interval.Interval) bool {
	from, to := iv.StartNanos-borderNanos, iv.EndNanos()+borderNanos
	at, _ := slices.BinarySearch(c.AtNanos, from)
	return at == len(c.AtNanos) || c.AtNanos[at] >= to
}
