package compare

import (
	"cmp"
	"slices"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// scalingFigures are the numbers of a fit, with the difference that shows nothing. Those without a unit have that of the throughput.
var scalingFigures = []struct {
	name, unit string
	resolution float64
	of         func(*result.ScalingFit) *result.ScalingEstimate
}{
	{"throughput of one worker", "", 0, func(f *result.ScalingFit) *result.ScalingEstimate { return &f.Lambda }},
	{"contention", "ratio", 1e-4, func(f *result.ScalingFit) *result.ScalingEstimate { return &f.Sigma }},
	{"coherency", "ratio", 1e-6, func(f *result.ScalingFit) *result.ScalingEstimate { return &f.Kappa }},
	{"peak", "workers", 0, func(f *result.ScalingFit) *result.ScalingEstimate { return f.Peak }},
	{"throughput at the peak", "", 0, func(f *result.ScalingFit) *result.ScalingEstimate { return f.PeakThroughput }},
}

// comparedScaling pairs the fits of runs that grow; base is the number of runs on the first side. An unanswered fit is not
// compared.
func comparedScaling(documents []*document.Document, base int) []Shift {
	list := []Shift{}
	fits := make([]*result.Scaling, len(documents))
	for i, d := range documents {
		if s := d.Scaling; s != nil && s.Fit != nil && s.Answered {
			fits[i] = s
		}
	}
	some := func(s *result.Scaling) bool { return s != nil }
	if !slices.ContainsFunc(fits[:base], some) || !slices.ContainsFunc(fits[base:], some) {
		return list
	}
	for _, f := range scalingFigures {
		throughput, runs := "", make([]bounded, len(fits))
		for i, s := range fits {
			if runs[i] = notKnown("it has no fit that is an answer"); s == nil {
				continue
			}
			throughput = s.Unit
			if runs[i] = notKnown("it has no peak"); f.of(s.Fit) != nil {
				e := f.of(s.Fit)
				runs[i] = bounded{value: float64(e.Value), low: float64(e.Low), high: float64(e.High)}
			}
		}
		if s := (Shift{Name: f.name, Title: f.name, Unit: cmp.Or(f.unit, throughput), estimates: true, resolution: f.resolution}); s.fill(runs) {
			list = append(list, s)
		}
	}
	return list
}

// shifts are all numbers of a comparison that are compared by difference.
func (c *Comparison) shifts() []*Shift {
	var list []*Shift
	for i := range c.Costs {
		for j := range c.Costs[i].Figures {
			list = append(list, &c.Costs[i].Figures[j])
		}
	}
	for i := range c.Scaling {
		list = append(list, &c.Scaling[i])
	}
	return list
}
