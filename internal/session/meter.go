package session

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/wait"
)

// How often cluster metrics are read: often enough that a short run has points to draw, seldom enough that a long one
// is not disturbed.
const (
	meterPeriodShort = time.Second
	meterPeriod      = 5 * time.Second
	meterShortRun    = 15 * time.Minute
	// meterDeadline bounds one reading; a target that is busy failing over answers late.
	meterDeadline = 30 * time.Second
	// meterLastDeadline bounds the last reading, for which a run that has ended waits.
	meterLastDeadline = 2 * time.Second
	// vmValuesMax bounds the values of single VMs that a run records and that its evaluation keeps in memory. A hundred
	// VMs for ten hours are 8 million values; with more, VMs are polled less often.
	vmValuesMax = 20_000_000
)

// nodeMeter polls cluster metrics during the run, and those of VMs if the target has them.
type nodeMeter struct {
	source   target.NodeMeter // nil: the target has none
	vms      target.VMMeter   // nil: the target has none of VMs
	tag      target.Tag
	record   *recorder
	period   time.Duration
	estimate time.Duration

	began, vmsRead time.Time
	tried          time.Time // the last reading, also one that failed
	vmPeriod       time.Duration
	firstNode      map[string]string // of VMs: the name of a series does not change when its VM moves
}

func newNodeMeter(t target.Target, r *recorder, estimate time.Duration, tag target.Tag) *nodeMeter {
	m := &nodeMeter{record: r, tag: tag, period: meterPeriod, estimate: estimate, firstNode: map[string]string{}}
	m.source, m.vms = target.Meters(t)
	if estimate < meterShortRun {
		m.period = meterPeriodShort
	}
	return m
}

// run polls until ctx ends, and reads once more then: a load that ran for a part of a period at the end of the run would have no
// reading. A series of failed readings is reported once, until a reading succeeds again.
func (m *nodeMeter) run(ctx context.Context) {
	if m.source == nil {
		return
	}
	m.began = time.Now()
	failing := false
	wait.NowAndEvery(ctx, m.period, func() {
		err := m.read(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			m.record.say(interval.EventLog, "cluster metrics", "cannot be read: "+err.Error())
		}
		failing = err != nil
	})
	// Averages over less than a tenth of a period are noise.
	if !failing && time.Since(m.tried) >= m.period/10 {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), meterLastDeadline)
		defer cancel()
		_ = m.read(last)
	}
}

func (m *nodeMeter) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, meterDeadline)
	defer cancel()
	now := time.Now()
	m.tried = now
	// A tick comes a little early or late.
	if m.vms != nil && now.Sub(m.vmsRead) >= m.vmPeriod-m.period/2 {
		nodes, vms, err := m.vms.SampleVMs(ctx, m.tag)
		if err != nil {
			return err
		}
		if len(vms) > 0 { // the platform may have had nothing new
			m.vmsRead, m.vmPeriod = now, vmPeriod(m.period, max(m.estimate, now.Sub(m.began)), len(vms))
		}
		m.record.Samples(evaluate.NodeSamples(nodes, m.record.now()))
		m.record.Samples(m.vmSamples(vms))
		return nil
	}
	readings, err := m.source.SampleNodes(ctx)
	if err != nil {
		return err
	}
	m.record.Samples(evaluate.NodeSamples(readings, m.record.now()))
	return nil
}

// vmPeriod is how long to wait between two readings of that many values, so that the whole run has no more than vmValuesMax.
func vmPeriod(least, run time.Duration, values int) time.Duration {
	return max(least, time.Duration(float64(run)*float64(values)/vmValuesMax))
}

// vmSamples turns one reading into samples of the bundle.
func (m *nodeMeter) vmSamples(readings []target.VMSample) []result.Sample {
	for i, r := range readings {
		if _, known := m.firstNode[r.VM]; !known {
			m.firstNode[r.VM] = r.NodeID
		}
		readings[i].NodeID = m.firstNode[r.VM]
	}
	return evaluate.VMSamples(readings, m.record.zero)
}
