// Package stages measures what a load does in each of the stages that it goes through by itself, such as the rates of a response time
// curve: its means over all stages describe none of them. Each VM goes through them on its own, so that they begin and end at
// different times.
//
//	engines ──Find──▶ Loads ── AddCounts(interval) … ──▶ Borders ── Add(merged interval) … ──▶ List
//
//	stages.go  stages of each VM
//	leave.go   at which rate response time leaves its floor
package stages

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// Loads collects the stages of all loads that have some.
type Loads struct {
	engines map[string]interval.Engine
	streams map[key]*stream
}

// key is one load on one VM.
type key struct {
	load analysis.Start
	vm   string
}

// stream is the course of one load on one VM.
type stream struct {
	spans []span // in the order of time
}

// span is a stage on one VM.
type span struct {
	number     int
	began      int64
	counted    bool
	from, to   int64 // what counts of it
	operations uint64
	bytes      uint64
	nanos      int64
	times      analysis.Times
}

// Find returns nil if no load has stages.
func Find(engines map[string]interval.Engine) *Loads {
	for _, e := range engines {
		if len(e.Stages) > 0 && e.GaugeMeant(interval.GaugeStage) >= 0 {
			return &Loads{engines: engines, streams: map[key]*stream{}}
		}
	}
	return nil
}

// AddCounts notes when stages begin and end. The intervals of a VM come in the order of time.
func (l *Loads) AddCounts(iv *interval.Interval) {
	e := l.engines[iv.Workload]
	at := e.GaugeMeant(interval.GaugeStage)
	if iv.Prefill || at < 0 || at >= len(iv.Gauges) || !(iv.Gauges[at] >= 1 && iv.Gauges[at] <= float64(len(e.Stages))) {
		return
	}
	k := key{analysis.Start{Workload: iv.Workload, Instance: iv.Instance}, iv.VM}
	s := l.streams[k]
	if s == nil {
		k.load.Workload, k.vm = strings.Clone(iv.Workload), strings.Clone(iv.VM)
		s = &stream{}
		l.streams[k] = s
	}
	number := int(iv.Gauges[at])
	if n := len(s.spans); n == 0 || s.spans[n-1].number < number {
		s.spans = append(s.spans, span{number: number, began: iv.StartNanos})
	} else if s.spans[n-1].number > number {
		return
	}
	last := &s.spans[len(s.spans)-1]
	if iv.StartNanos-last.began < e.Stages[number-1].SkipNanos {
		return
	}
	if !last.counted {
		last.counted, last.from = true, iv.StartNanos
	}
	last.to = max(last.to, iv.EndNanos())
}

// Borders are the times at which Add distinguishes intervals.
func (l *Loads) Borders() (list []int64) {
	if l == nil {
		return nil
	}
	for _, s := range l.streams {
		for i := range s.spans {
			if s.spans[i].counted {
				list = append(list, s.spans[i].from, s.spans[i].to)
			}
		}
	}
	return list
}

// Add takes an interval, or several that were merged between Borders, with complete histograms.
func (l *Loads) Add(iv *interval.Interval) {
	if l == nil || iv.Prefill {
		return
	}
	s := l.streams[key{analysis.Start{Workload: iv.Workload, Instance: iv.Instance}, iv.VM}]
	if s == nil {
		return
	}
	middle := iv.StartNanos + iv.LengthNanos/2
	at, _ := slices.BinarySearchFunc(s.spans, middle, func(one span, middle int64) int { return cmp.Compare(one.end(), middle) })
	if at == len(s.spans) || !s.spans[at].counted || middle < s.spans[at].from {
		return
	}
	one := &s.spans[at]
	for d := range iv.Directions {
		one.operations += iv.Directions[d].Operations
		one.bytes += iv.Directions[d].Bytes
	}
	one.nanos += iv.LengthNanos
	one.times.Add(iv)
}

// end orders spans; one that does not count ends where it begins.
func (s *span) end() int64 { return max(s.began, s.to) }

// List returns the stages of each load that has some.
func (l *Loads) List() (all []result.Stages) {
	if l == nil {
		return nil
	}
	byLoad := map[analysis.Start][]*stream{}
	for k, s := range l.streams {
		byLoad[k.load] = append(byLoad[k.load], s)
	}
	for load, streams := range byLoad {
		e := l.engines[load.Workload]
		out := result.Stages{Workload: load.Workload, Instance: load.Instance, Unit: e.RateUnit(), Sentences: []string{}}
		for i, stage := range e.Stages {
			if one, ok := measured(streams, i+1); ok {
				one.Name, one.Curve, one.Asked = stage.Name, stage.Curve, result.Number(stage.Rate)
				out.List = append(out.List, one)
			}
		}
		if len(out.List) > 0 {
			out.Sentences = sentences(&out)
			all = append(all, out)
		}
	}
	slices.SortFunc(all, func(a, b result.Stages) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Instance, b.Instance))
	})
	return all
}

// measured merges a stage of all VMs; false if none was in it for long enough.
func measured(streams []*stream, number int) (out result.Stage, ok bool) {
	out.Number = number
	var times analysis.Times
	seconds := 0.0
	for _, s := range streams {
		at := slices.IndexFunc(s.spans, func(one span) bool { return one.number == number })
		if at < 0 || s.spans[at].nanos == 0 {
			continue
		}
		one := &s.spans[at]
		length := time.Duration(one.nanos).Seconds()
		out.VMs++
		seconds += length
		out.Rate += result.Number(float64(one.operations) / length)
		out.Bytes += result.Number(float64(one.bytes) / length)
		times.Merge(&one.times)
	}
	if out.VMs == 0 {
		return out, false
	}
	out.Seconds = result.Number(seconds / float64(out.VMs))
	stats := times.Statistics("response")
	out.Mean, out.Median, out.P99 = stats.Mean, stats.Median, stats.P99
	out.AtLeast = stats.AtLeast.Has("p99") && !math.IsNaN(float64(stats.P99))
	return out, true
}
