package session

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/target"
)

// How often cluster metrics are read: often enough that a short run has points to draw, seldom enough that a long one
// is not disturbed.
const (
	meterPeriodShort = time.Second
	meterPeriod      = 5 * time.Second
	meterShortRun    = 15 * time.Minute
	// meterDeadline bounds one reading; a target that is busy failing over answers late.
	meterDeadline = 30 * time.Second
)

// nodeMeter reads cluster metrics for as long as the run goes on.
type nodeMeter struct {
	source target.NodeMeter // nil: the target has none
	record *recorder
	period time.Duration
}

func newNodeMeter(t target.Target, r *recorder, estimate time.Duration) *nodeMeter {
	source, _ := t.(target.NodeMeter)
	m := &nodeMeter{source: source, record: r, period: meterPeriod}
	if estimate < meterShortRun {
		m.period = meterPeriodShort
	}
	return m
}

// run reads until ctx ends. That readings fail is told once, until one succeeds again.
func (m *nodeMeter) run(ctx context.Context) {
	if m.source == nil {
		return
	}
	tick := time.NewTicker(m.period)
	defer tick.Stop()
	failing := false
	for {
		err := m.read(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			m.record.say(interval.EventLog, "cluster metrics", "cannot be read: "+err.Error())
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (m *nodeMeter) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, meterDeadline)
	defer cancel()
	readings, err := m.source.SampleNodes(ctx)
	if err != nil {
		return err
	}
	m.record.Samples(NodeSamples(readings, m.record.now()))
	return nil
}
