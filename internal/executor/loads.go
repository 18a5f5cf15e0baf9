package executor

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/verb"
)

// reachConcurrentMax bounds how many VMs are dialled at a time.
const reachConcurrentMax = 32

// ErrStopping means that no new work may begin because the run is ending.
var ErrStopping = errors.New("run is stopping")

// loads keeps the loads of a run. The table is guarded by mu; a loadRun is written by its own goroutines and may be
// read by others once done is closed.
type loads struct {
	engine *Engine
	mu     sync.Mutex
	latest map[string]*loadRun // by loadKey
	count  map[string]int      // starts by loadKey: a prefill is not counted as a start of the load
}

// loadRun is one start of one load on all VMs of its group.
type loadRun struct {
	spec     verb.LoadSpec
	lasting  *plan.Lasting   // extension beyond the runtime of spec
	stagger  verb.Staggering // of its VMs; known when all are prepared
	group    string
	instance int
	handle   int
	started  time.Time
	members  []*member
	servers  []*member // that answer them; not measured
	removed  bool      // what the prefill made is removed; guarded by loads.mu
	cancel   context.CancelFunc
	launched chan struct{} // closed when the last VM was started
	pace     pace
	starts   *starts       // set if the VMs start together
	done     chan struct{} // closed when all VMs have ended; failure is final then
	failure  error
	stopped  bool // by a step; guarded by loads.mu
}

// member is one VM of a loadRun.
type member struct {
	vm      target.VM
	runner  load.Runner
	remote  load.Remote
	serving []*member // the servers of a client
	cuts    int       // of the VM when the load began
	held    load.Held // the prepared load, if it starts on all VMs together
	planned time.Time // when the load is to start here
	err     error
}

// ends is when the runtime of the load is over on the VM.
func (m *member) ends(run *loadRun) time.Time { return m.planned.Add(run.spec.Runtime) }

func (l *loads) start(ctx context.Context, spec verb.LoadSpec, lasting *plan.Lasting) error {
	e := l.engine
	if err := e.cfg.fail().At("load.start"); err != nil {
		return err
	}
	w, ok := e.plan.Workload(spec.Workload)
	if !ok {
		return fmt.Errorf("start workload %q: not in the plan", spec.Workload)
	}
	run := &loadRun{spec: spec, lasting: lasting, group: w.Group, launched: make(chan struct{}), done: make(chan struct{})}
	if spec.Prefill {
		run.group = w.DataGroup()
	}
	if err := l.gather(ctx, run, w.Servers); err != nil {
		return err
	}
	if err := l.register(run); err != nil {
		return err
	}
	bg, cancel := context.WithCancel(e.background)
	run.cancel = cancel
	e.work.Go(func() { l.drive(bg, run, w) })
	select {
	case <-run.launched:
	case <-run.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return e.cfg.fail().At("load.started")
}

// gather reaches all VMs of the group, and those of its servers.
func (l *loads) gather(ctx context.Context, run *loadRun, servers *plan.Servers) error {
	e := l.engine
	of := func(group string) (list []*member) {
		for _, vm := range e.fleet.Of(group) {
			list = append(list, &member{vm: vm, cuts: e.fleet.PowerCutsOf(vm.Name)})
		}
		return list
	}
	if run.members = of(run.group); len(run.members) == 0 {
		return fmt.Errorf("start workload %q: group %q has no VM", run.spec.Workload, run.group)
	}
	for i, m := range run.members {
		m.remote.VMs, m.remote.Rank = len(run.members), i
	}
	if servers != nil && !run.spec.Prefill {
		run.servers = of(servers.Group)
	}
	all := slices.Concat(run.members, run.servers)
	var wait sync.WaitGroup
	slots := make(chan struct{}, reachConcurrentMax)
	for _, m := range all {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if m.err = e.cfg.fail().At("load.reach"); m.err == nil {
				m.runner, m.err = e.cfg.Runner(ctx, m.vm)
			}
		})
	}
	wait.Wait()
	return joinMembers(fmt.Sprintf("start workload %q", run.spec.Workload), all)
}

// joinMembers returns nil, or one error that names the VMs that have one.
func joinMembers(action string, members []*member) error {
	const shownMax = 3
	var texts []string
	var first error
	for _, m := range members {
		if m.err == nil {
			continue
		}
		if first == nil {
			first = m.err
		}
		texts = append(texts, m.vm.Name)
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("%s on %d of %d VMs (%s): %w", action, len(texts), len(members), textio.Few(texts, shownMax), first)
}

// register requests permission to start the load from the machine, and adds it to the table.
func (l *loads) register(run *loadRun) error {
	handle := l.engine.want(verb.LoadKey(run.spec.Workload, run.spec.Prefill))
	if handle == 0 {
		return fmt.Errorf("start workload %q: %w", run.spec.Workload, ErrStopping)
	}
	run.handle = handle
	l.mu.Lock()
	defer l.mu.Unlock()
	key := verb.LoadKey(run.spec.Workload, run.spec.Prefill)
	if old := l.latest[key]; old != nil {
		select {
		case <-old.done:
		default:
			l.engine.post(outcome{Finished: handle})
			return fmt.Errorf("start workload %q: it is running already", run.spec.Workload)
		}
	}
	l.count[key]++
	run.instance = l.count[key]
	l.latest[key] = run
	return nil
}

// drive runs the load on all its VMs and closes the run.
func (l *loads) drive(ctx context.Context, run *loadRun, w plan.Workload) {
	e := l.engine
	l.serve(ctx, run, w)
	if run.spec.MaxConcurrent > 0 {
		l.driveInTurn(ctx, run, w)
	} else {
		l.driveTogether(ctx, run, w)
	}
	run.dismiss()
	stopped := ctx.Err() != nil
	run.cancel()
	fatal := l.judge(run, stopped)
	end := l.event(run, interval.EventWorkloadEnd)
	l.mu.Lock()
	end.Stopped = run.stopped
	l.mu.Unlock()
	text := ""
	if run.failure != nil {
		text = diag.Sentence(run.failure)
		end.Error = text
	}
	e.emit(end)
	close(run.done)
	if err := e.cfg.fail().At("load.ended"); err != nil && text == "" {
		text = err.Error()
	}
	e.post(outcome{Finished: run.handle, Err: text, Fatal: fatal, Refused: fatal && diag.ExitCode(run.failure) == diag.ExitRefused})
}

// driveInTurn runs the load on at most MaxConcurrent VMs at a time.
func (l *loads) driveInTurn(ctx context.Context, run *loadRun, w plan.Workload) {
	l.began(run, time.Now())
	l.engine.emit(l.event(run, interval.EventWorkloadStart))
	slots := make(chan struct{}, run.spec.MaxConcurrent)
	var wait sync.WaitGroup
	for _, m := range run.members {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		wait.Go(func() {
			defer func() { <-slots }()
			l.driveMember(ctx, run, m, w)
		})
	}
	close(run.launched)
	wait.Wait()
}

func (l *loads) driveMember(ctx context.Context, run *loadRun, m *member, w plan.Workload) {
	bounded := ctx
	if run.spec.Timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, run.spec.Timeout)
		defer cancel()
	}
	m.err = m.runner.Run(bounded, l.value(run, m, w), l.engine.cfg.Intervals)
	if m.err == nil && ctx.Err() == nil && bounded.Err() != nil {
		m.err = fmt.Errorf("did not complete within %v", run.spec.Timeout)
	}
	l.settle(run, m)
}

// settle reports the outcome of the load on one VM, unless it succeeded.
func (l *loads) settle(run *loadRun, m *member) {
	if m.err != nil && l.expected(m) {
		l.engine.emit(interval.Event{Kind: interval.EventAnnotation, Phase: l.engine.phaseName(), Workload: run.spec.Workload,
			Instance: run.instance, Prefill: run.spec.Prefill, Group: run.group, Subject: m.vm.Name, CutByRun: true,
			Message: fmt.Sprintf("%s: load lost on %s (powered off by this run)", run.spec.Workload, m.vm.Name)})
		m.err = nil
	} else if m.err != nil {
		m.nameServer()
		l.engine.emit(interval.Event{Kind: interval.EventDisturbance, Phase: l.engine.phaseName(), Workload: run.spec.Workload,
			Instance: run.instance, Prefill: run.spec.Prefill, Group: run.group, Subject: m.vm.Name, Error: diag.Sentence(m.err),
			Message: fmt.Sprintf("%s failed on %s", run.spec.Workload, m.vm.Name)})
	}
}

// expected reports whether this run itself took the VM, or one of its servers, away under the load.
func (l *loads) expected(m *member) bool {
	cut := func(m *member) bool { return l.engine.fleet.PowerCutsOf(m.vm.Name) > m.cuts }
	return errors.Is(m.err, load.ErrLost) && cut(m) || slices.ContainsFunc(m.serving, cut)
}

// judge decides the outcome of the load. It is fatal if the load unintentionally runs on no VM any more.
func (l *loads) judge(run *loadRun, stopped bool) (fatal bool) {
	failed := 0
	for _, m := range run.members {
		if m.err != nil {
			failed++
		}
	}
	what := "run workload"
	if run.spec.Prefill {
		what = "prefill for workload"
	}
	run.failure = joinMembers(fmt.Sprintf("%s %q", what, run.spec.Workload), run.members)
	return failed == len(run.members) && !stopped
}

// value is the workload that one VM receives.
func (l *loads) value(run *loadRun, m *member, w plan.Workload) load.Workload {
	e := l.engine
	v := load.Workload{
		Name: w.Name, Group: m.vm.Group, VM: m.vm.Name, Ordinal: m.vm.Ordinal, Instance: run.instance, Number: e.plan.WorkloadNumber(w.Name),
		Remote: m.remote, Generator: w.Generator, ConfigName: w.ConfigFile, Config: e.plan.Document.Files[w.ConfigFile],
		Options: w.Options, Runtime: run.lasting.Longest(run.spec.Runtime), Prefill: run.spec.Prefill,
		Seed: seedOf(e.plan.Seed, run.spec.Seed), Scale: w.Scale, ZeroUnixNanos: e.cfg.Zero.UnixNano(),
	}
	if run.spec.Prefill {
		v.Options = verb.WithPrefillDepth(v.Options, e.plan.GeneratorOf(w.Name), run.prefillDepth())
	}
	if len(m.remote.Peers) > 0 && !m.remote.Serves && w.Servers.Holds {
		return v // its data is on the disks of its server
	}
	for _, d := range m.vm.Disks {
		path := d.Path
		if path == "" {
			path = d.Device
		}
		v.Devices = append(v.Devices, load.Device{Name: d.Device, Path: path, SizeBytes: l.nominalSize(m.vm.Group, d), Consent: consentTo(d)})
	}
	return v
}

// nominalSize returns the size of a disk in the scenario, from which a generator scales. In a rehearsal the disk itself is
// smaller and holds every scaled extent.
func (l *loads) nominalSize(group string, d target.Disk) int64 {
	g, _ := l.engine.plan.Group(group)
	for _, planned := range g.Disks {
		if planned.Device == d.Device {
			return planned.ScenarioBytes
		}
	}
	return d.SizeBytes
}

// prefillDepth is the queue depth of a prefill, for the VMs on their current nodes.
func (run *loadRun) prefillDepth() int {
	nodeIDs := map[string]bool{}
	for _, m := range run.members {
		nodeIDs[m.vm.NodeID] = true
	}
	return run.spec.PrefillDepth(len(run.members), len(nodeIDs))
}

// seedOf derives the seed of a load from the run's seed and the text that its step gives, so that equal texts mean equal streams.
func seedOf(run uint64, text string) uint64 {
	if text == "" {
		return run
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return run ^ h.Sum64()
}

func (l *loads) event(run *loadRun, kind interval.EventKind) interval.Event {
	ev := interval.Event{Kind: kind, Phase: l.engine.phaseName(), Workload: run.spec.Workload, Instance: run.instance,
		Group: run.group, Prefill: run.spec.Prefill}
	if run.spec.Prefill {
		ev.Message = "prefill"
	}
	return ev
}

func (l *loads) find(workload string, prefill bool) *loadRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest[verb.LoadKey(workload, prefill)]
}

func (l *loads) Wait(ctx context.Context, workload string, prefill bool, timeout time.Duration) error {
	if err := l.engine.cfg.fail().At("load.wait"); err != nil {
		return err
	}
	run := l.find(workload, prefill)
	if run == nil {
		return fmt.Errorf("wait for workload %q: it was never started", workload)
	}
	l.mu.Lock()
	started := run.started
	l.mu.Unlock()
	if started.IsZero() {
		started = time.Now() // it is about to start
	}
	if run.spec.Runtime > 0 {
		timeout += time.Until(started.Add(run.lasting.Longest(run.spec.Runtime) + run.spec.Stagger))
	}
	select {
	case <-run.done: // however late
		return run.failure
	default:
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-run.done:
		return run.failure
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return fmt.Errorf("wait for workload %q: it has not ended in time, %v after its start", workload,
			time.Since(started).Round(time.Second))
	}
}

func (l *loads) Stop(ctx context.Context, workload string) error {
	if err := l.engine.cfg.fail().At("load.stop"); err != nil {
		return err
	}
	run := l.find(workload, false)
	if run == nil {
		return fmt.Errorf("stop workload %q: it was never started", workload)
	}
	l.mu.Lock()
	run.stopped = true
	l.mu.Unlock()
	run.cancel()
	select {
	case <-run.done:
		return run.failure
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// consentTo returns the consent for a load to write to a disk of a VM. The target created the disk for this VM, so all
// data on it belongs to the run. If it is a block device in the VM, it must have the size at which it was created and must
// not be in use.
func consentTo(d target.Disk) load.Consent {
	return load.Consent{Own: true, SizeBytes: d.SizeBytes}
}
