package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/agent/pool"
	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/run"
	"github.com/braggdev/bragg/internal/target"
)

// RunOptions are what a run needs besides the plan. The zero value is ready to use.
type RunOptions struct {
	Watcher Watcher // may be nil
	// Stops asks the run to end, each value harder than the former.
	Stops <-chan run.StopLevel
	// Failpoint makes named places fail in tests; nil otherwise.
	Failpoint func(name string) error
}

func (o RunOptions) at(name string) error {
	if o.Failpoint == nil {
		return nil
	}
	return o.Failpoint(name)
}

// Failpoints lists the names that a session passes besides those of run.Failpoints, in the order in which it does.
func Failpoints() []string {
	return []string{
		"session.leased", "session.journalled", "session.bundled", "session.engine", "session.ran", "session.evaluate",
		"session.seal", "session.sealed", "session.forget", "session.release",
	}
}

// Outcome is what came of a run.
type Outcome struct {
	Run      string         `json:"run"`
	Dir      string         `json:"dir"` // of the bundle
	Ended    string         `json:"ended"`
	Verdict  result.Verdict `json:"verdict"`
	Reason   string         `json:"reason,omitempty"`
	Problems []string       `json:"problems,omitempty"` // of teardown and undoing
	Left     []string       `json:"left,omitempty"`     // what is not undone: Clean does it
	Exit     int            `json:"exit"`
}

// Run carries the plan out and seals the bundle, whatever happens to the run itself. An error says that there is no
// sealed bundle; Clean then ends what was begun. A run that failed, or was stopped, is no error but told by the Outcome.
func (p *Prepared) Run(ctx context.Context, o RunOptions) (Outcome, error) {
	if err := p.Preflight(); err != nil {
		return Outcome{}, err
	}
	c := &carrier{Prepared: p, options: o, dir: filepath.Join(p.Order.Runs, p.ID)}
	defer func() { _ = p.Close() }() // nothing is written through it any more
	if err := os.MkdirAll(p.Order.Runs, 0o755); err != nil {
		return Outcome{}, fmt.Errorf("create the runs folder: %w", err)
	}
	lease, err := control.AcquireLease(p.Order.Runs, leaseName(p.config), p.ID, o.Failpoint)
	if err != nil {
		return Outcome{}, err
	}
	c.lease = lease
	var outcome Outcome
	if c.how, err = json.Marshal(journalTarget{Config: p.config, Lease: leaseName(p.config)}); err == nil {
		err = lease.AtTarget(ctx, p.target, c.how)
	}
	if err == nil {
		outcome, err = c.carry(ctx)
	}
	return outcome, errors.Join(err, o.at("session.release"), lease.Release())
}

// leaseName tells targets apart that cannot be used by two runs at once.
func leaseName(c target.Config) string {
	if c.Name == "" || c.Name == c.Provider {
		return c.Provider
	}
	return c.Provider + "-" + c.Name
}

// carrier is one run under way. Its fields are set in the order of the calls below and owned by the goroutine of Run.
type carrier struct {
	*Prepared
	options RunOptions
	dir     string
	lease   *control.Lease
	how     []byte // to reach the target, as a journalTarget
	journal *control.Journal
	record  *recorder
	agents  *pool.Pool
	remote  *metric.Remote // nil: no other store is written to
	engine  *run.Engine
}

// journalTarget is what Clean needs to open the target again.
type journalTarget struct {
	Config target.Config `json:"config"`
	Lease  string        `json:"lease"`
}

func (c *carrier) carry(ctx context.Context) (Outcome, error) {
	if err := c.options.at("session.leased"); err != nil {
		return Outcome{}, err
	}
	if err := c.openJournal(); err != nil {
		return Outcome{}, err
	}
	defer c.journal.Close()
	if err := c.openBundle(); err != nil {
		// Nothing outside was touched, so nothing has to be remembered.
		return Outcome{}, errors.Join(err, c.forget())
	}
	defer c.record.writer.Close() // after Seal it does nothing
	defer c.endRemote(ctx)        // after finish it does nothing; the cache, which fills it, has ended by then
	defer c.record.cache.close()
	out, err := c.execute(ctx)
	if err != nil {
		return Outcome{}, err
	}
	return c.finish(ctx, out)
}

func (c *carrier) openJournal() error {
	tag, err := control.NewTag(c.Order.Runs, c.ID, c.options.Failpoint)
	if err != nil {
		return err
	}
	header := control.Header{Run: c.ID, Tag: tag, Scenario: c.Scenario.Name, Target: c.how, Lease: c.lease.Fence}
	if c.journal, err = control.CreateJournal(c.Order.Runs, header, nil, c.options.Failpoint); err != nil {
		return err
	}
	return c.options.at("session.journalled")
}

func (c *carrier) openBundle() error {
	zero := time.Now()
	secrets := secretsOf(c.Scenario, Catalog())
	m := c.manifest(zero, secrets)
	w, err := result.Create(c.dir, m)
	if err != nil {
		return err
	}
	c.record = &recorder{zero: zero, manifest: m, writer: w, secrets: secrets, cache: newCache(), watch: c.options.Watcher}
	if err = w.WritePlan(secrets.plan(&c.Plan.Plan)); err == nil {
		err = attachScenario(w, secrets.scenario(c.Scenario))
	}
	if err == nil {
		err = c.options.at("session.bundled")
	}
	if err != nil {
		return errors.Join(err, w.Close())
	}
	if c.options.Watcher != nil {
		c.options.Watcher.Begin(&c.Plan.Plan, c.dir)
	}
	return nil
}

// execute runs the plan. All goroutines that it starts have ended when it returns.
func (c *carrier) execute(ctx context.Context) (run.Outcome, error) {
	if err := c.options.at("session.engine"); err != nil {
		return run.Outcome{}, err
	}
	dialer, ok := c.target.(target.AgentDialer)
	if !ok {
		return run.Outcome{}, errors.New("connect to agents: the target offers no connections")
	}
	meter := newNodeMeter(c.target, c.record, c.Plan.Estimate.Total, c.journal.Header().Tag)
	scraped := newExporters(&c.Plan.Plan, queriesOf(c.Scenario), c.record)
	scraped.watchNodes(c.config.Nodes)
	c.agents = pool.New(dialer, pool.Options{
		Fence: c.lease.Fence, Zero: c.record.zero, Systems: c.Inventory.Systems, SilentFor: silentFor(&c.Plan.Plan),
		Observer: &observer{c.record, scraped, c},
	})
	defer c.agents.Close()
	output, err := c.outputDir()
	if err != nil {
		return run.Outcome{}, err
	}
	c.engine, err = run.New(c.Plan, run.Config{
		Target: c.target, Journal: c.journal, Runner: c.agents.Runner, Gone: c.agents.SwitchedOff, Intervals: c.record,
		Events: func(e interval.Event) {
			if e.Kind == interval.EventPlaced {
				scraped.placed(e)
				c.agents.Moved(e.Subject, e.Node)
			}
			c.record.Event(e)
		},
		Zero: c.record.zero, Dir: output, Collect: c.collectLogs, Failpoint: c.options.Failpoint,
	})
	if err != nil {
		return run.Outcome{}, err
	}
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	if c.remote, err = c.startRemote(); err != nil {
		return run.Outcome{}, err
	}
	work.Go(func() { c.openCache(beside) })
	work.Go(func() { meter.run(beside) })
	work.Go(func() { scraped.scraper.Run(beside) })
	work.Go(func() { c.passStops(beside) })
	work.Go(func() { c.watchBundle(beside) })
	work.Go(func() { c.watchLease(beside) })
	work.Go(func() { c.watchMeetings(beside) })
	work.Go(func() { c.watchPauses(beside) })
	work.Go(func() { guard{place: c.Order.Runs, space: Space}.watch(beside, c.lowSpace) })
	work.Go(func() { newTargetGuard(c.target, c.Inventory).watch(beside, c.lowSpace) })
	return c.engine.Run(ctx)
}

// openCache opens the metric store and says when it is lost. It is a cache: nothing of the run depends on it.
func (c *carrier) openCache(ctx context.Context) {
	select {
	case <-c.record.cache.start(filepath.Join(c.dir, metric.Dir), c.record.manifest, c.remote):
		c.record.say(interval.EventLog, "metric store", fmt.Sprintf("lost: %v; queries will be answered from the record", c.record.cache.err()))
	case <-ctx.Done():
	}
}

func (c *carrier) passStops(ctx context.Context) {
	for {
		select {
		case level := <-c.options.Stops:
			c.engine.Stop(level)
		case <-ctx.Done():
			return
		}
	}
}

// lowSpace stops the load for what a guard has found.
func (c *carrier) lowSpace(err error) {
	reason := err.Error()
	var e *diag.Error
	if errors.As(err, &e) && e.Hint != "" {
		reason += "; " + e.Hint
	}
	c.engine.Guard(reason)
}

// watchLease stops the load once another controller has the target.
func (c *carrier) watchLease(ctx context.Context) {
	select {
	case h := <-c.lease.Lost():
		c.engine.Guard(fmt.Sprintf("the target was out of reach for too long, and run %q of %s has it now", h.Run, h.User))
	case <-ctx.Done():
	}
}

// watchMeetings notes which other runs use the machine, and when.
func (c *carrier) watchMeetings(ctx context.Context) {
	for {
		select {
		case m := <-c.lease.Meetings():
			e := interval.Event{Kind: interval.EventShared, Subject: m.With.Run, UncertainNanos: m.Uncertain.Nanoseconds(),
				Message: fmt.Sprintf("run %q (process %d of %s) uses this machine too", m.With.Run, m.With.Process.PID, m.With.User)}
			if m.Ended {
				e.Kind, e.Message = interval.EventAlone, fmt.Sprintf("run %q does not use this machine any more", m.With.Run)
			}
			e.AtNanos = max(0, m.At.Sub(c.record.zero).Nanoseconds())
			c.record.Event(e)
		case <-ctx.Done():
			return
		}
	}
}

// watchBundle stops the load once the bundle takes no more: what cannot be recorded need not be done.
func (c *carrier) watchBundle(ctx context.Context) {
	select {
	case <-c.record.writer.Failed():
		c.engine.Guard(c.record.writer.Err().Error())
	case <-ctx.Done():
	}
}
