package iojob

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// jsonSteady is fio's object; latencies, which fio 3.33 does not have, only where the criterion is about them.
type jsonSteady struct {
	Criterion string         `json:"ss"`
	Duration  int64          `json:"duration"` // seconds
	Attained  int            `json:"attained"`
	Figure    string         `json:"criterion"`
	Deviation fixed          `json:"max_deviation"`
	Slope     fixed          `json:"slope"`
	Data      jsonSteadyData `json:"data"`
}

type jsonSteadyData struct {
	BandwidthMean uint64   `json:"bw_mean"`
	IOPSMean      uint64   `json:"iops_mean"`
	LatencyMean   *fixed   `json:"lat_mean,omitempty"` // nanoseconds
	IOPS          []uint64 `json:"iops"`
	Bandwidth     []uint64 `json:"bw"`
	Latency       []fixed  `json:"lat,omitempty"`
}

func (s *Steady) json() *jsonSteady {
	if s == nil {
		return nil
	}
	out := &jsonSteady{
		Criterion: s.Criterion.String(), Duration: int64(s.Criterion.Duration / time.Second), Figure: s.figure(6),
		Deviation: fixed(s.Deviation), Slope: fixed(s.Slope),
	}
	if s.Attained {
		out.Attained = 1
	}
	// fio divides by what the window has room for and lists all of it, zeros where the job ended before it was full.
	padded := *s
	padded.Window = append(slices.Clone(s.Window), make([]SteadyValue, max(0, capacity(s.Criterion)-len(s.Window)))...)
	mean := padded.mean()
	out.Data = jsonSteadyData{BandwidthMean: uint64(mean.Bandwidth), IOPSMean: uint64(mean.IOPS), IOPS: []uint64{}, Bandwidth: []uint64{}}
	for _, v := range padded.Window {
		out.Data.IOPS = append(out.Data.IOPS, uint64(v.IOPS))
		out.Data.Bandwidth = append(out.Data.Bandwidth, uint64(v.Bandwidth))
		if s.Criterion.Measure == "lat" {
			out.Data.Latency = append(out.Data.Latency, fixed(v.Latency))
		}
	}
	if s.Criterion.Measure == "lat" {
		latency := fixed(mean.Latency)
		out.Data.LatencyMean = &latency
	}
	return out
}

// mean is that of the window.
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
