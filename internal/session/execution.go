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
	"github.com/braggdev/bragg/internal/baseline"
	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/builtin"
	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session/meter"
	"github.com/braggdev/bragg/internal/target"
)

// RunOptions are the inputs of a run in addition to the plan. The zero value is ready to use.
type RunOptions struct {
	Watcher Watcher // may be nil
	// Stops requests the end of the run, each value more forcefully than the previous one.
	Stops <-chan executor.StopLevel
	// Failpoint makes named places fail in tests; nil otherwise.
	Failpoint func(name string) error
}

func (o RunOptions) at(name string) error {
	if o.Failpoint == nil {
		return nil
	}
	return o.Failpoint(name)
}

// Failpoints lists the failpoints of a session in order, without those of executor.Failpoints.
func Failpoints() []string {
	return []string{
		"session.leased", "session.journalled", "session.bundled", "session.engine", "session.ran", "session.evaluate",
		"session.seal", "session.sealed", "session.forget", "session.release",
		"recover.power", "recover.powered",
	}
}

// Outcome is the outcome of a run.
type Outcome struct {
	Run     string         `json:"run"`
	Dir     string         `json:"dir"` // of the bundle
	Ended   string         `json:"ended"`
	Verdict result.Verdict `json:"verdict"`
	Reason  string         `json:"reason,omitempty"`
	// Validity is empty if there is no summary.
	Validity       result.Validity `json:"validity,omitempty"`
	ValidityReason string          `json:"validity_reason,omitempty"`
	Problems       []string        `json:"problems,omitempty"` // of teardown and undoing
	Left           []string        `json:"left,omitempty"`     // changes that are not undone; Clean undoes them
	Exit           int             `json:"exit"`
}

// Run runs the plan and seals the bundle, whatever the outcome of the run. An error means that there is no sealed bundle;
// Clean can then finish the cleanup. A run that failed or was stopped is not an error: the Outcome reports it.
func (p *Prepared) Run(ctx context.Context, o RunOptions) (Outcome, error) {
	if err := p.Preflight(); err != nil {
		return Outcome{}, err
	}
	x := &execution{Prepared: p, options: o, dir: filepath.Join(p.Order.Runs, p.ID)}
	defer func() { _ = p.Close() }() // nothing is written through it any more
	if err := os.MkdirAll(p.Order.Runs, 0o755); err != nil {
		return Outcome{}, fmt.Errorf("create the runs folder: %w", err)
	}
	lease, err := control.AcquireLease(p.Order.Runs, leaseName(p.config), p.ID, o.Failpoint)
	if err != nil {
		return Outcome{}, err
	}
	x.lease = lease
	var outcome Outcome
	identity, err := target.IdentityOf(ctx, p.target)
	if err == nil {
		x.how, err = json.Marshal(journalTarget{Config: p.config, Lease: leaseName(p.config), Identity: identity, BMCs: bmcsOf(p.target)})
	}
	if err == nil {
		err = lease.AtTarget(ctx, p.target, x.how)
	}
	if err == nil {
		outcome, err = x.run(ctx)
	}
	return outcome, errors.Join(err, o.at("session.release"), lease.Release())
}

// leaseName distinguishes targets that two runs cannot use at once.
func leaseName(c target.Config) string {
	if c.Name == "" || c.Name == c.Provider {
		return c.Provider
	}
	return c.Provider + "-" + c.Name
}

// execution is one run under way. Its fields are set in the order of the calls below and owned by the goroutine of Run.
type execution struct {
	*Prepared
	options RunOptions
	dir     string
	lease   *control.Lease
	how     []byte // to reach the target, as a journalTarget
	journal *control.Journal
	record  *recorder
	agents  *pool.Pool
	remote  *metric.Remote // nil: no other store is written to
	engine  *executor.Engine
}

// journalTarget is what Clean needs to open the target again.
type journalTarget struct {
	Config target.Config `json:"config"`
	Lease  string        `json:"lease"`
	// Identity of its platform; "" if it has none.
	Identity string `json:"identity,omitempty"`
	// BMCs are the nodes with a BMC, by the ids of the inventory; nil in a journal of an earlier version.
	BMCs []target.NodeConfig `json:"bmcs,omitempty"`
}

// bmcsOf lists the nodes that can be powered on without the rest of the target.
func bmcsOf(t target.Target) []target.NodeConfig {
	if o, ok := t.(target.OutOfBand); ok {
		return o.BMCNodes()
	}
	return nil
}

func (x *execution) run(ctx context.Context) (Outcome, error) {
	if err := x.options.at("session.leased"); err != nil {
		return Outcome{}, err
	}
	if err := x.openJournal(); err != nil {
		return Outcome{}, err
	}
	defer x.journal.Close()
	if err := x.openBundle(); err != nil {
		// Nothing outside was touched, so nothing has to be remembered.
		return Outcome{}, errors.Join(err, x.forget())
	}
	defer x.record.writer.Close() // after Seal it does nothing
	defer x.endRemote(ctx)        // after finish it does nothing; the cache, which fills it, has ended by then
	defer x.record.cache.close()
	out, err := x.runPlan(ctx)
	if err != nil {
		return Outcome{}, err
	}
	return x.finish(ctx, out)
}

func (x *execution) openJournal() error {
	tag, err := control.NewTag(x.Order.Runs, x.ID, x.options.Failpoint)
	if err != nil {
		return err
	}
	header := control.Header{Run: x.ID, Tag: tag, Scenario: x.Scenario.Name, Target: x.how, Lease: x.lease.Fence}
	if x.journal, err = control.CreateJournal(x.Order.Runs, header, nil, x.options.Failpoint); err != nil {
		return err
	}
	return x.options.at("session.journalled")
}

func (x *execution) openBundle() error {
	zero := time.Now()
	secrets := secretsOf(x.Scenario, Catalog())
	m := x.manifest(zero, secrets)
	w, err := result.Create(x.dir, m)
	if err != nil {
		return err
	}
	x.record = &recorder{zero: zero, manifest: m, writer: w, secrets: secrets, cache: newCache(), watch: x.options.Watcher}
	if err = w.WritePlan(secrets.plan(&x.Plan.Plan)); err == nil {
		err = attachScenario(w, secrets.scenario(x.Scenario))
	}
	if err == nil && x.Scenario.ExpectsBaseline() {
		err = attachBaseline(w, baseline.Of(x.Order.Runs, x.Scenario.Name))
	}
	if err == nil {
		err = x.options.at("session.bundled")
	}
	if err != nil {
		return errors.Join(err, w.Close())
	}
	if x.options.Watcher != nil {
		x.options.Watcher.Begin(&x.Plan.Plan, x.dir)
	}
	return nil
}

// runPlan runs the plan. All goroutines that it starts have ended when it returns.
func (x *execution) runPlan(ctx context.Context) (executor.Outcome, error) {
	if err := x.options.at("session.engine"); err != nil {
		return executor.Outcome{}, err
	}
	dialer, ok := x.target.(target.AgentDialer)
	if !ok {
		return executor.Outcome{}, errors.New("connect to agents: the target offers no connections")
	}
	use := meter.New(x.target, x.record, meter.Options{
		Zero: x.record.zero, Tag: x.journal.Header().Tag, Estimate: x.Plan.Estimate.Total, Simulates: x.Inventory.Simulates,
	})
	scraped := newExporters(&x.Plan.Plan, x.Scenario.Queries(), x.config.Nodes, x.record)
	scraped.sources = &builtin.Feed{
		Config: &x.config, Wanted: metric.Named(x.Scenario.Queries()), Zero: x.record.zero, Samples: x.record.Samples, Event: x.record.Event,
		Mapping: collect.NewMapping(x.Inventory.Nodes, x.config.Nodes, x.journal.Header().Tag.Mark()),
	}
	x.agents = pool.New(dialer, pool.Options{
		Fence: x.lease.Fence, Zero: x.record.zero, Systems: x.Inventory.Systems, SilentFor: silentFor(&x.Plan.Plan),
		Topology: func(group string) target.Topology {
			g, _ := x.Plan.Group(group)
			return g.Topology
		},
		Observer: &observer{x.record, scraped, x}, Outputs: x.keepOutputs,
	})
	defer x.agents.Close()
	used := &usage{record: x.record}
	output, err := x.outputDir()
	if err != nil {
		return executor.Outcome{}, err
	}
	x.engine, err = executor.New(x.Plan, executor.Config{
		Target: x.target, Journal: x.journal, Runner: x.agents.Runner, Gone: x.agents.SwitchedOff, Intervals: x.record,
		Events: func(e interval.Event) {
			if e.Kind == interval.EventPlaced {
				scraped.placed(e)
				x.agents.Moved(e.Subject, e.Node)
			}
			x.record.Event(e)
			used.follow(e)
		},
		Zero: x.record.zero, Dir: output, Collect: x.collectLogs, Mask: x.record.secrets.text, Failpoint: x.options.Failpoint,
	})
	if err != nil {
		return executor.Outcome{}, err
	}
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	if x.remote, err = x.startRemote(); err != nil {
		return executor.Outcome{}, err
	}
	work.Go(func() { x.openCache(beside) })
	work.Go(func() { use.Run(beside) })
	work.Go(func() { scraped.scraper.Run(beside) })
	work.Go(func() { scraped.sources.Run(beside) })
	work.Go(func() { x.passStops(beside) })
	work.Go(func() { x.watchReasons(beside) })
	work.Go(func() { x.watchMeetings(beside) })
	work.Go(func() { x.watchPauses(beside) })
	work.Go(func() { guard{place: x.Order.Runs, space: Space}.watch(beside, x.lowSpace) })
	work.Go(func() { newTargetGuard(x.target, x.Inventory).watch(beside, x.lowSpace) })
	return x.engine.Run(ctx)
}

// openCache opens the metric store and reports when it is lost. It is a cache: no part of the run depends on it.
func (x *execution) openCache(ctx context.Context) {
	select {
	case <-x.record.cache.start(filepath.Join(x.dir, metric.Dir), x.record.manifest, x.remote):
		x.record.say(interval.EventLog, "metric store", fmt.Sprintf("lost: %v; queries will be answered from the record", x.record.cache.err()))
	case <-ctx.Done():
	}
}

func (x *execution) passStops(ctx context.Context) {
	for {
		select {
		case level := <-x.options.Stops:
			x.engine.Stop(level)
		case <-ctx.Done():
			return
		}
	}
}

// lowSpace stops the load for the reason that a guard reports.
func (x *execution) lowSpace(err error) {
	x.engine.Guard(diag.Sentence(err))
}

// watchMeetings records which other runs use the machine, and when.
func (x *execution) watchMeetings(ctx context.Context) {
	for {
		select {
		case m := <-x.lease.Meetings():
			e := interval.Event{Kind: interval.EventShared, Subject: m.With.Run, UncertainNanos: m.Uncertain.Nanoseconds(),
				Message: fmt.Sprintf("run %q (process %d of %s) also uses this machine", m.With.Run, m.With.Process.PID, m.With.User)}
			if m.Ended {
				e.Kind, e.Message = interval.EventAlone, fmt.Sprintf("run %q no longer uses this machine", m.With.Run)
			}
			e.AtNanos = max(0, m.At.Sub(x.record.zero).Nanoseconds())
			x.record.Event(e)
		case <-ctx.Done():
			return
		}
	}
}

// watchReasons stops the load once another controller has the target, or the bundle cannot be written: what cannot be recorded need
// not be done.
func (x *execution) watchReasons(ctx context.Context) {
	select {
	case h := <-x.lease.Lost():
		x.engine.Guard(fmt.Sprintf("lost the lease of the target, which was unreachable for too long; run %q of %s holds it now", h.Run, h.User))
	case <-x.record.writer.Failed():
		x.engine.Guard(x.record.writer.Err().Error())
	case <-ctx.Done():
	}
}
