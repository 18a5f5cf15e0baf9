// Package meter records the use of nodes and VMs during a run, as the target counts it.
//
//	target.NodeMeter, target.VMMeter ──▶ Meter, every second or five ──▶ samples, placed by their age ──▶ bundle and store
package meter

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/wait"
)

// How often cluster metrics are read: often enough that a short run has points to draw, seldom enough that a long one
// is not disturbed.
const (
	periodShort = time.Second
	periodLong  = 5 * time.Second
	shortRun    = 15 * time.Minute
	// deadline bounds one reading; a target that is busy failing over answers late.
	deadline = 30 * time.Second
	// lastDeadline bounds the last reading, for which a run that has ended waits.
	lastDeadline = 2 * time.Second
	// vmValuesMax bounds the values of single VMs that a run records and that its evaluation keeps in memory. A hundred
	// VMs for ten hours are 8 million values; with more, VMs are polled less often.
	vmValuesMax = 20_000_000
)

// Record takes what a run records.
type Record interface {
	Samples(samples []result.Sample)
	Event(e interval.Event)
}

// Options describe the run.
type Options struct {
	Zero     time.Time // of its axis, as time.Now gave it
	Tag      target.Tag
	Estimate time.Duration // of its length
	// Simulates has the capabilities that the target only simulates: metrics of nodes or VMs, of which samples are marked.
	Simulates map[target.Capability]string
}

// Meter polls cluster metrics, and those of VMs if the target has them.
type Meter struct {
	source target.NodeMeter // nil: the target has none
	vms    target.VMMeter   // nil: the target has none of VMs
	record Record
	run    Options
	period time.Duration

	began, vmsRead time.Time
	tried          time.Time // the last reading, also one that failed
	vmPeriod       time.Duration
	firstNode      map[string]string // of VMs: the name of a series does not change when its VM moves
}

// New returns a meter of t. It reads nothing before Run.
func New(t target.Target, r Record, run Options) *Meter {
	m := &Meter{record: r, run: run, period: periodLong, firstNode: map[string]string{}}
	m.source, m.vms = target.Meters(t)
	if run.Estimate < shortRun {
		m.period = periodShort
	}
	return m
}

// Run polls until ctx ends, and reads once more then: a load that ran for a part of a period at the end of the run would have no
// reading. A series of failed readings is reported once, until a reading succeeds again.
func (m *Meter) Run(ctx context.Context) {
	if m.source == nil {
		return
	}
	m.began = time.Now()
	failing := false
	wait.NowAndEvery(ctx, m.period, func() {
		err := m.read(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			m.record.Event(interval.Event{
				AtNanos: m.axis().Nanos, Kind: interval.EventLog, Subject: "cluster metrics", Message: "cannot be read: " + err.Error(),
			})
		}
		failing = err != nil
	})
	// Averages over less than a tenth of a period are noise.
	if !failing && time.Since(m.tried) >= m.period/10 {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastDeadline)
		defer cancel()
		_ = m.read(last)
	}
}

func (m *Meter) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	now := time.Now()
	m.tried = now
	// A tick comes a little early or late.
	if m.vms == nil || now.Sub(m.vmsRead) < m.vmPeriod-m.period/2 {
		nodes, err := m.source.SampleNodes(ctx)
		if err == nil {
			m.mark(nodes, nil)
			m.record.Samples(NodeSamples(nodes, m.axis()))
		}
		return err
	}
	nodes, vms, err := m.vms.SampleVMs(ctx, m.run.Tag)
	if err != nil {
		return err
	}
	if len(vms) > 0 { // the platform may have had nothing new
		m.vmsRead, m.vmPeriod = now, vmPeriod(m.period, max(m.run.Estimate, now.Sub(m.began)), len(vms))
	}
	m.keepNodes(vms)
	m.mark(nodes, vms)
	axis := m.axis()
	m.record.Samples(NodeSamples(nodes, axis))
	m.record.Samples(VMSamples(vms, axis))
	return nil
}

// mark says of readings that the platform made them up.
func (m *Meter) mark(nodes []target.NodeSample, vms []target.VMSample) {
	if _, ok := m.run.Simulates[target.CapNodeMeter]; ok {
		for i := range nodes {
			nodes[i].Simulated = true
		}
	}
	if _, ok := m.run.Simulates[target.CapVMMeter]; ok {
		for i := range vms {
			vms[i].Simulated = true
		}
	}
}

func (m *Meter) axis() Axis {
	return Axis{Now: time.Now(), Nanos: time.Since(m.run.Zero).Nanoseconds()}
}

// vmPeriod is how long to wait between two readings of that many values, so that the whole run has no more than vmValuesMax.
func vmPeriod(least, run time.Duration, values int) time.Duration {
	return max(least, time.Duration(float64(run)*float64(values)/vmValuesMax))
}

// keepNodes gives each VM the node that it had first.
func (m *Meter) keepNodes(readings []target.VMSample) {
	for i, r := range readings {
		if _, known := m.firstNode[r.VM]; !known {
			m.firstNode[r.VM] = r.NodeID
		}
		readings[i].NodeID = m.firstNode[r.VM]
	}
}
