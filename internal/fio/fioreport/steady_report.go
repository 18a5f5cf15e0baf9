package fioreport

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// jsonSteady is fio's object; latencies, which fio 3.33 does not have, are included only if the criterion is about them.
type jsonSteady struct {
	Criterion string         `json:"ss"`
	Duration  int64          `json:"duration"` // seconds
	Attained  int            `json:"attained"`
	Figure    string         `json:"criterion"`
	Deviation Decimal        `json:"max_deviation"`
	Slope     Decimal        `json:"slope"`
	Data      jsonSteadyData `json:"data"`
}

type jsonSteadyData struct {
	BandwidthMean uint64    `json:"bw_mean"`
	IOPSMean      uint64    `json:"iops_mean"`
	LatencyMean   *Decimal  `json:"lat_mean,omitempty"` // nanoseconds
	IOPS          []uint64  `json:"iops"`
	Bandwidth     []uint64  `json:"bw"`
	Latency       []Decimal `json:"lat,omitempty"`
}

func (s *Steady) json() *jsonSteady {
	if s == nil {
		return nil
	}
	out := &jsonSteady{
		Criterion: s.Criterion.String(), Duration: int64(s.Criterion.Duration / time.Second), Figure: s.figure(6),
		Deviation: Decimal(s.Deviation), Slope: Decimal(s.Slope),
	}
	if s.Attained {
		out.Attained = 1
	}
	// fio divides by the capacity of the window and lists all of it, with zeros if the job ended before it was full.
	padded := *s
	padded.Window = append(slices.Clone(s.Window), make([]SteadyValue, max(0, capacity(s.Criterion)-len(s.Window)))...)
	mean := padded.mean()
	out.Data = jsonSteadyData{BandwidthMean: uint64(mean.Bandwidth), IOPSMean: uint64(mean.IOPS), IOPS: []uint64{}, Bandwidth: []uint64{}}
	for _, v := range padded.Window {
		out.Data.IOPS = append(out.Data.IOPS, uint64(v.IOPS))
		out.Data.Bandwidth = append(out.Data.Bandwidth, uint64(v.Bandwidth))
		if s.Criterion.Measure == "lat" {
			out.Data.Latency = append(out.Data.Latency, Decimal(v.Latency))
		}
	}
	if s.Criterion.Measure == "lat" {
		latency := Decimal(mean.Latency)
		out.Data.LatencyMean = &latency
	}
	return out
}

// mean returns the mean of the window.
func (s *Steady) mean() (m SteadyValue) {
	for _, v := range s.Window {
		n := float64(len(s.Window))
		m.IOPS, m.Bandwidth, m.Latency = m.IOPS+v.IOPS/n, m.Bandwidth+v.Bandwidth/n, m.Latency+v.Latency/n
	}
	return m
}

func (s *Steady) text(b *strings.Builder) {
	if s == nil {
		return
	}
	attained, kind, mean := "no", "mean dev", s.mean()
	if s.Attained {
		attained = "yes"
	}
	if s.Criterion.Slope {
		kind = "slope"
	}
	latency := ""
	if s.Criterion.Measure == "lat" {
		latency = fmt.Sprintf(", lat=%.2fusec", mean.Latency/1e3)
	}
	fmt.Fprintf(b, "  steadystate  : attained=%s, bw=%s/s (%s/s), iops=%s%s, %s %s=%s\n", attained, bytesText(mean.Bandwidth),
		decimalText(mean.Bandwidth), countText(mean.IOPS), latency, s.Criterion.Measure, kind, s.figure(3))
}

// Steady reports whether a row is steady, and how nearly; see SNIA's Solid State Storage Performance Test Specification,
// which has the same two criteria for a window's values: distance from their mean, and slope of the regression line.
type Steady struct {
	Criterion fiojob.SteadyState
	Attained  bool
	// Window holds the values of the window, the oldest first; fewer than its capacity if the job ended before it was full.
	Window []SteadyValue
	// Deviation is the largest distance from the mean, Slope the slope of the least-squares line per check; only the one
	// that the criterion is about is set, in the unit of the measure. Share is the same in percent of the mean.
	Deviation, Slope, Share float64
}

// SteadyValue has the rates from one check to the next: operations and bytes per second, mean latency in nanoseconds.
type SteadyValue struct{ IOPS, Bandwidth, Latency float64 }

// values returns the values that the criterion is about.
func (s *Steady) values() []float64 {
	out := make([]float64, len(s.Window))
	for i, v := range s.Window {
		switch s.Criterion.Measure {
		case "bw":
			out[i] = v.Bandwidth
		case "lat":
			out[i] = v.Latency
		default:
			out[i] = v.IOPS
		}
	}
	return out
}

// capacity is the number of values in a full window.
func capacity(s fiojob.SteadyState) int {
	return max(1, int(s.Duration/cmp.Or(s.CheckInterval, time.Second)))
}

// Add adds the next value and checks the window once it is full.
func (s *Steady) Add(v SteadyValue) {
	s.Window = append(s.Window, v)
	full := capacity(s.Criterion)
	if len(s.Window) > full {
		s.Window = slices.Delete(s.Window, 0, 1)
	}
	s.measure()
	distance := max(s.Deviation, math.Abs(s.Slope))
	if s.Criterion.Percent {
		distance = math.Abs(s.Share)
	}
	s.Attained = len(s.Window) == full && !math.IsNaN(distance) && distance < s.Criterion.Limit
}

// measure computes deviation or slope of the window.
func (s *Steady) measure() {
	values := s.values()
	mean := meanOf(values)
	s.Deviation, s.Slope = 0, 0
	figure := &s.Slope
	if s.Criterion.Slope {
		s.Slope = slopeOf(values)
	} else {
		for _, v := range values {
			s.Deviation = max(s.Deviation, math.Abs(v-mean))
		}
		figure = &s.Deviation
	}
	s.Share = 100 * *figure / mean
}

func meanOf(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// slopeOf returns the slope of the least-squares line through (0, v0), (1, v1), …
func slopeOf(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return 0
	}
	middle, mean := (n-1)/2, meanOf(values)
	var over, under float64
	for i, v := range values {
		x := float64(i) - middle
		over += x * (v - mean)
		under += x * x
	}
	return over / under
}

// figure prints deviation or slope as fio does: "0.049975%", "0.500000".
func (s *Steady) figure(decimals int) string {
	v, unit := max(s.Deviation, s.Slope), ""
	if s.Criterion.Slope {
		v = s.Slope
	}
	if s.Criterion.Percent {
		v, unit = s.Share, "%"
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + unit
}
