package vdbench

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// amount is what was done in a time.
type amount struct {
	operations, reads, bytes uint64
	nanos                    int64
	serviceNanos             float64
	byDevice                 map[string]uint64
}

// total is what vdbench prints as avg_2-N: all intervals of a run but its first one, which a warm-up replaces.
type total struct {
	run     *run
	start   int64
	begun   bool
	all     amount
	counted amount
	service stat.Histogram
}

// add counts an interval.
func (t *total) add(iv *interval.Interval) {
	if !t.begun {
		t.begun, t.start = true, iv.StartNanos
	}
	t.all.add(iv, nil)
	skip := int64(t.run.interval)
	if t.run.warmup > 0 {
		skip = int64(t.run.warmup)
	}
	if iv.StartNanos-t.start >= skip {
		t.counted.add(iv, &t.service)
	}
}

func (a *amount) add(iv *interval.Interval, service *stat.Histogram) {
	a.nanos += iv.LengthNanos
	for d := range iv.Directions {
		traffic := &iv.Directions[d]
		a.operations, a.bytes = a.operations+traffic.Operations, a.bytes+traffic.Bytes
		if interval.Direction(d) == interval.Read {
			a.reads += traffic.Operations
		}
		if service != nil && traffic.Service != nil {
			service.Merge(traffic.Service)
		}
	}
	if a.byDevice == nil {
		a.byDevice = map[string]uint64{}
	}
	for name, counts := range iv.Devices {
		for _, c := range counts {
			a.byDevice[name] += c.Operations
			a.serviceNanos += float64(c.ServiceNanos)
		}
	}
}

func (a *amount) rate() float64 {
	if a.nanos <= 0 {
		return 0
	}
	return float64(a.operations) / float64(a.nanos) * 1e9
}

// meanMillis is the mean response time as vdbench counts it: from the start of an operation.
func (a *amount) meanMillis() float64 {
	if a.operations == 0 {
		return 0
	}
	return a.serviceNanos / float64(a.operations) / 1e6
}

// overdue reports whether a point of a curve took longer than its stopcurve allows, so that later points do not run.
func (t *total) overdue(next *run) bool {
	return t.run.curve > 0 && next.curve > 0 && t.counted.meanMillis() >= next.stop
}

// follow gives a point of a curve its rate and the shares that the maximum had. vdbench rounds rates up to hundreds, or tens below 100.
func (r *run) follow(most *total) {
	if r.curve == 0 {
		return
	}
	rate := most.counted.rate() * r.curve / 100
	step := 100.0
	if rate < step {
		step = 10
	}
	r.rate = max(step, ceilTo(rate, step))
	var sum uint64
	for _, n := range most.counted.byDevice {
		sum += n
	}
	streams := append([]stream(nil), r.streams...)
	for i := range streams {
		if sum > 0 && streams[i].weight == 0 && len(streams) > 1 {
			streams[i].share = float64(most.counted.byDevice[streams[i].device]) / float64(sum)
		}
	}
	r.streams = streams
}

func ceilTo(v, step float64) float64 {
	n := int64(v / step)
	if float64(n)*step < v {
		n++
	}
	return float64(n) * step
}

// table prints the totals of runs.
func table(totals []total) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%4s %10s %10s %10s %6s %9s %9s  %s\n", "run", "i/o rate", "MiB/s", "bytes/io", "read%", "resp ms", "p99 ms", "without the first interval, or the warm-up")
	for i := range totals {
		t := &totals[i]
		c := &t.counted
		if c.operations == 0 {
			fmt.Fprintf(&out, "%4d %10s %10s %10s %6s %9s %9s  %s\n", i+1, "-", "-", "-", "-", "-", "-", t.run.name)
			continue
		}
		n := float64(c.operations)
		fmt.Fprintf(&out, "%4d %10.2f %10.2f %10.0f %6.2f %9.3f %9.3f  %s\n", i+1, c.rate(), float64(c.bytes)/float64(c.nanos)*1e9/(1<<20),
			float64(c.bytes)/n, 100*float64(c.reads)/n, c.meanMillis(), float64(t.service.Quantile(0.99))/1e6, t.run.name)
	}
	return out.String()
}
