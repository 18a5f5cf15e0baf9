package builtin

import (
	"context"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
)

// Feed reads all sources of a target file during a run.
type Feed struct {
	Config *target.Config
	*collect.Mapping
	// Wanted reports whether queries of the scenario name a metric.
	Wanted func(name string) bool
	Zero   time.Time // of the run's axis
	// Samples and Event are called from several goroutines. Samples owns its argument.
	Samples func([]result.Sample)
	Event   func(interval.Event)
}

// Run reads until ctx ends and returns when all sources are closed.
func (f *Feed) Run(ctx context.Context) {
	var work sync.WaitGroup
	for _, s := range Sources(f.Config) {
		follower := &collect.Follower{
			Source: s, Interval: s.Interval, Zero: f.Zero, Mapping: f.Mapping, Sink: f.Samples, Event: f.Event,
			Open: func(ctx context.Context) (collect.Collector, error) {
				return Open(ctx, f.Config, collect.Options{Source: s, Wanted: f.Wanted, IsVM: f.IsVM})
			},
		}
		work.Go(func() { follower.Run(ctx) })
	}
	work.Wait()
}
