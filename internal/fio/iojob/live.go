package iojob

import (
	"maps"

	"github.com/braggdev/bragg/internal/interval"
)

// Live is the progress of a clone, for readers during the run. Counts only grow.
type Live struct {
	Job     string
	Clone   int // over all jobs, from 1
	Traffic [interval.DirectionCount]interval.Traffic
	// OpenLoop: operations have a due time, so that Due, NotIssued and Backlog apply.
	OpenLoop          bool
	Due, NotIssued    uint64
	Backlog, InFlight uint64 // now
	CPUNanos          int64
	StalledNanos      int64
	Devices           map[string]interval.DeviceTraffic
}

// liveTotals is the part of Live that a tally lacks.
type liveTotals struct {
	backlog, inFlight uint64
	cpu               int64
	devices           map[string]interval.DeviceTraffic
}

func (l *liveTotals) add(iv *interval.Interval) {
	l.backlog, l.inFlight = iv.Backlog, iv.InFlight
	if iv.Final {
		l.backlog = 0 // the backlog will never be issued
	}
	l.cpu += iv.CPUNanos
	for name, traffic := range iv.Devices {
		if l.devices == nil {
			l.devices = map[string]interval.DeviceTraffic{}
		}
		sum := l.devices[name]
		for d := range sum {
			sum[d].Operations += traffic[d].Operations
			sum[d].Bytes += traffic[d].Bytes
			sum[d].ServiceNanos += traffic[d].ServiceNanos
		}
		l.devices[name] = sum
	}
}

// live returns a copy of the progress of all clones that have begun.
func (r *runner) live() []Live {
	var out []Live
	for _, c := range r.clones {
		c.mu.Lock()
		if c.started != 0 {
			l := Live{
				Job: c.job.Name, Clone: c.number + 1, Due: c.tally.Due, NotIssued: c.tally.Never, Backlog: c.live.backlog,
				InFlight: c.live.inFlight, CPUNanos: c.live.cpu, StalledNanos: c.tally.Stalled, Devices: maps.Clone(c.live.devices),
			}
			for d := range l.Traffic {
				l.OpenLoop = l.OpenLoop || c.job.Rate[d] > 0 || c.job.RateIOPS[d] > 0
				l.Traffic[d].Add(&c.tally.Traffic[d])
			}
			out = append(out, l)
		}
		c.mu.Unlock()
	}
	return out
}
