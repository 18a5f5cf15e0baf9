package meter

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
)

// discard is a record that keeps nothing.
type discard struct{}

func (discard) Samples([]result.Sample) {}
func (discard) Event(interval.Event)    {}

// counted is a target that counts VMs and the number of polls.
type counted struct {
	target.Target
	vms           int
	ofVMs, ofAll  atomic.Int64
	hangs, failed bool
}

func (c *counted) SampleNodes(ctx context.Context) ([]target.NodeSample, error) {
	c.ofAll.Add(1)
	return nil, nil
}

func (c *counted) SampleVMs(ctx context.Context, tag target.Tag) ([]target.NodeSample, []target.VMSample, error) {
	c.ofVMs.Add(1)
	if c.hangs {
		<-ctx.Done()
		return nil, nil, context.Cause(ctx)
	}
	if c.failed {
		return nil, nil, errors.New("no host answers")
	}
	return nil, make([]target.VMSample, c.vms*len(target.VMMetrics())), nil
}

func TestVMsAreReadLessOftenTheMoreThereAre(t *testing.T) {
	for _, c := range []struct {
		vms      int
		estimate time.Duration
		every    time.Duration // roughly
	}{{3, time.Minute, time.Second}, {100, time.Minute, time.Second}, {100, 10 * time.Hour, 5 * time.Second}, {1000, 10 * time.Hour, 20 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			const span = 10 * time.Minute
			source := &counted{vms: c.vms}
			m := New(source, discard{}, Options{Zero: time.Now(), Estimate: c.estimate})
			ctx, cancel := context.WithTimeout(t.Context(), span)
			defer cancel()
			m.Run(ctx)
			want := float64(span / c.every)
			if got := float64(source.ofVMs.Load()); got < 0.9*want || got > 1.1*want+1 {
				t.Errorf("%d VMs for %v were read %v times in %v, want about %v", c.vms, c.estimate, got, span, want)
			}
			if all := float64(source.ofVMs.Load() + source.ofAll.Load()); all < 0.9*float64(span/m.period) {
				t.Errorf("nodes were read %v times only", all)
			}
			values := float64(source.ofVMs.Load()) * float64(c.vms*len(target.VMMetrics())) * float64(c.estimate) / float64(span)
			if c.estimate > span && values > 1.2*vmValuesMax {
				t.Errorf("the whole run would record %.0f values", values)
			}
		})
	}
}

// Polling a target that hangs is given up, and polling one that fails is retried.
func TestVMsOfATargetThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &counted{hangs: true}
		m := New(source, discard{}, Options{Zero: time.Now(), Estimate: time.Minute})
		began := time.Now()
		if err := m.read(t.Context()); err == nil || time.Since(began) > deadline {
			t.Errorf("it took %v: %v", time.Since(began), err)
		}
		source.hangs, source.failed = false, true
		if err := m.read(t.Context()); err == nil || source.ofVMs.Load() != 2 {
			t.Errorf("asked %d times: %v", source.ofVMs.Load(), err)
		}
	})
}

// A load that runs for a part of a second at the end of a run has a reading, also while the target hangs.
func TestNodesAreReadAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		span  time.Duration
		hangs bool
		want  int64
	}{{1300 * time.Millisecond, false, 3}, {1050 * time.Millisecond, false, 2}, {500 * time.Millisecond, true, 1}} {
		synctest.Test(t, func(t *testing.T) {
			source := &counted{hangs: c.hangs}
			m := New(source, discard{}, Options{Zero: time.Now(), Estimate: time.Minute})
			ctx, cancel := context.WithTimeout(t.Context(), c.span)
			defer cancel()
			began := time.Now()
			m.Run(ctx)
			if got := source.ofVMs.Load() + source.ofAll.Load(); got != c.want {
				t.Errorf("in %v it was read %d times, want %d", c.span, got, c.want)
			}
			if late := time.Since(began) - c.span; late > lastDeadline {
				t.Errorf("the end took %v", late)
			}
		})
	}
}

// kept is a record that keeps samples.
type kept struct{ samples []result.Sample }

func (k *kept) Samples(list []result.Sample) { k.samples = append(k.samples, list...) }
func (*kept) Event(interval.Event)           {}

// steady is a target with one reading of a node and of a VM.
type steady struct{ target.Target }

func (steady) SampleNodes(context.Context) ([]target.NodeSample, error) {
	return []target.NodeSample{{NodeID: "a", Metric: "CpuUsage.Avg.Percent", At: time.Now(), Value: 1}}, nil
}

func (s steady) SampleVMs(ctx context.Context, _ target.Tag) ([]target.NodeSample, []target.VMSample, error) {
	nodes, err := s.SampleNodes(ctx)
	return nodes, []target.VMSample{{VM: "v", Metric: target.VMReads, At: time.Now(), Value: 1}}, err
}

// Samples of metrics that the platform makes up are marked, the others are not.
func TestSimulatedMetricsAreMarked(t *testing.T) {
	for _, only := range []target.Capability{target.CapNodeMeter, target.CapVMMeter} {
		synctest.Test(t, func(t *testing.T) {
			record := &kept{}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			New(steady{}, record, Options{Zero: time.Now(), Simulates: map[target.Capability]string{only: "random numbers"}}).Run(ctx)
			if len(record.samples) < 2 {
				t.Fatalf("%d samples", len(record.samples))
			}
			for _, s := range record.samples {
				if got, want := s.Labels["simulated"] == "true", (s.Labels["vm"] == "") == (only == target.CapNodeMeter); got != want {
					t.Errorf("%s simulated: %s has the labels %v", only, s.Name, s.Labels)
				}
			}
		})
	}
}
