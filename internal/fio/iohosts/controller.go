package iohosts

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/clock"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/sshlink"
	"github.com/braggdev/bragg/internal/textio"
)

// controller is one run. Its goroutine owns everything except the sessions.
type controller struct {
	options  *Options
	members  []*member
	events   chan event
	readers  sync.WaitGroup
	phase    int // the current one, -1 before the first
	begun    time.Time
	stopping bool
}

// member is the controller's state of one host.
type member struct {
	host    sshlink.Host
	session *session // nil if it was never reached
	jobs    []fiojob.Job
	own     map[string][]syntax.Option
	ready   int // prepared phases
	over    bool
	err     error
	nominal []int64 // start of each phase on the axis of the run
	periods [][]fioreport.Period
	report  *fioreport.Report
	offset  time.Duration
	error   time.Duration // of the clock
}

// event is a message of a session; a nil message is the session's end.
type event struct {
	member  *member
	message *message
	err     error
}

// Run runs jobs on hosts and reports. All hosts are connected and prepared before any load starts, and each phase (the jobs
// between two stonewalls) starts on all hosts at the same time. An error means that no job ran. A host that is lost later
// has its error and its results so far in the report; the others continue. A cancelled ctx ends all jobs early.
func Run(ctx context.Context, o Options) (*fioreport.Clients, error) {
	c := &controller{options: &o, events: make(chan event), phase: -1}
	for _, h := range o.Hosts {
		c.members = append(c.members, &member{host: h})
	}
	defer c.close()
	c.connect(ctx)
	if err := c.gate(ctx); err != nil {
		return nil, err
	}
	c.warnOfTwins()
	c.order(ctx)
	if err := c.gate(ctx); err != nil {
		return nil, err
	}
	if err := c.follow(ctx); err != nil {
		return nil, err
	}
	c.warnOfLate()
	return c.report(true), nil
}

// connect connects to all hosts concurrently.
func (c *controller) connect(ctx context.Context) {
	builds := &sshlink.Builds{Path: c.options.buildFor}
	var wait sync.WaitGroup
	for _, m := range c.members {
		wait.Go(func() { m.session, m.err = connect(ctx, m.host, c.options, builds) })
	}
	wait.Wait()
	for _, m := range c.members {
		m.over = m.err != nil
	}
}

// gate lets the run continue if all hosts are usable, or if one is and the others may be missing.
func (c *controller) gate(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var errs []error
	for _, m := range c.members {
		if m.err != nil {
			errs = append(errs, m.err)
		}
	}
	switch {
	case len(errs) == 0, c.options.WithoutFailed && len(errs) < len(c.members):
		return nil
	case len(c.members) > 1 && !c.options.WithoutFailed:
		c.say("no load was started on any host; --without-failed-hosts continues without those that fail")
	}
	return errors.Join(errs...)
}

// close ends every connection.
func (c *controller) close() {
	for _, m := range c.members {
		if m.session != nil {
			c.readers.Go(m.session.hangUp)
		}
	}
	go func() {
		c.readers.Wait()
		close(c.events)
	}()
	for range c.events { // readers must not block
	}
}

// warnOfTwins warns if two names refer to the same machine.
func (c *controller) warnOfTwins() {
	first := map[string]*member{}
	for _, m := range c.live() {
		boot := m.session.hello.Boot
		if other := first[boot]; other != nil && boot != "" {
			c.say("warning: hosts %s and %s are the same machine (%s): they share its CPUs, devices and files", other.host.Name, m.host.Name, m.session.hello.Hostname)
			continue
		}
		first[boot] = m
	}
}

// lateMax is the start skew of a host above which a warning is reported: a hundredth of a short run.
const lateMax = 50 * time.Millisecond

// warnOfLate reports hosts that began later than the others.
func (c *controller) warnOfLate() {
	for _, m := range c.members {
		if late := m.late(); late > lateMax+m.error {
			c.say("warning: host %s began %s after the common start: it lacked CPU time, or received the start time too late", m.host.Name, late.Round(time.Millisecond))
		}
	}
}

// live returns the members that still take part.
func (c *controller) live() []*member {
	var out []*member
	for _, m := range c.members {
		if !m.over {
			out = append(out, m)
		}
	}
	return out
}

// order sends every host its jobs and starts receiving its messages.
func (c *controller) order(ctx context.Context) {
	for i, m := range c.members {
		if m.over {
			continue
		}
		jobs := c.options.Jobs.forHost(m.host)
		own := identity{number: i, fileName: fileName(m.host), hostname: m.session.hello.Hostname}
		file, err := jobs.read(own, m.session.hello.Surroundings)
		if err != nil {
			m.err, m.over = sshlink.HostError(m.host, err, ""), true
			continue
		}
		m.jobs, m.own = file.Jobs(), map[string][]syntax.Option{}
		for _, s := range file.Sections {
			if !s.Global {
				m.own[s.Pos.String()] = s.Options
			}
		}
		if err := m.session.begin(ctx, &order{Jobs: jobs, Host: i, Name: own.fileName}); err != nil {
			m.err, m.over = err, true
			continue
		}
		c.readers.Go(func() {
			err := m.session.follow(func(msg *message) { c.events <- event{member: m, message: msg} })
			c.events <- event{member: m, err: err}
		})
	}
}

// follow receives messages until all hosts have ended.
func (c *controller) follow(ctx context.Context) error {
	var tick <-chan time.Time
	if c.options.Watch != nil && c.options.WatchEvery > 0 {
		ticker := time.NewTicker(c.options.WatchEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	stop := ctx.Done()
	var late <-chan time.Time
	for len(c.live()) > 0 {
		select {
		case e := <-c.events:
			c.take(e)
			if c.phase < 0 && !c.options.WithoutFailed {
				// At once: others may take hours to lay out their files.
				if err := c.gate(ctx); err != nil && ctx.Err() == nil {
					return err
				}
			}
			if err := c.advance(ctx); err != nil {
				return err
			}
		case <-tick:
			if c.phase >= 0 {
				c.options.Watch(c.report(false))
			}
		case <-stop:
			stop, c.stopping = nil, true
			for _, m := range c.live() {
				_ = send(m.session.run, &message{Stop: &struct{}{}}) // the reader sees why it fails
			}
			late = time.After(leaveMax)
		case <-late:
			for _, m := range c.live() {
				m.err, m.over = fmt.Errorf("it did not end within %s", leaveMax), true
				_ = m.session.client.Close()
			}
		}
	}
	if c.phase >= 0 {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.gate(ctx)
}

// take handles one event.
func (c *controller) take(e event) {
	m := e.member
	if m.over {
		return
	}
	switch msg := e.message; {
	case msg == nil:
		m.over = true
		if e.err != nil {
			m.err = errors.Join(m.err, e.err)
		}
		if m.err != nil && c.phase >= 0 && !c.stopping {
			c.say("host %s is lost; what it did until then stays in the report", m.host.Name)
		}
	case msg.Say != nil:
		c.say("%s: %s", m.host.Name, *msg.Say)
	case msg.Ready != nil:
		m.ready = msg.Ready.Phase + 1
		for _, fault := range msg.Ready.Faults {
			if msg.Ready.Phase == 0 {
				m.err = errors.Join(m.err, sshlink.HostError(m.host, fault.Err(), ""))
			}
		}
	case msg.Fault != nil:
		m.err = errors.Join(m.err, sshlink.HostError(m.host, msg.Fault.Err(), ""))
	case msg.Periods != nil:
		m.takePeriods(msg.Periods)
	case msg.Progress != nil:
		m.takeReport(msg.Progress)
	}
}

func (m *member) takePeriods(p *periods) {
	for p.Row >= len(m.periods) {
		m.periods = append(m.periods, nil)
	}
	row := m.periods[p.Row]
	m.periods[p.Row] = append(row[:min(p.From, len(row))], p.List...)
}

func (m *member) takeReport(r *fioreport.Report) {
	if err := r.Attach(m.jobs); err != nil {
		m.err = errors.Join(m.err, sshlink.HostError(m.host, err, ""))
		return
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Name, row.Engine = row.Job.Name, textio.Line(row.Engine)
		if i < len(m.periods) {
			row.SetPeriods(m.periods[i])
		}
	}
	for i := range r.Disks {
		r.Disks[i].Name = textio.Line(r.Disks[i].Name)
	}
	m.report = r
}

// advance starts the next phase once all remaining hosts are prepared for it.
func (c *controller) advance(ctx context.Context) error {
	next := c.phase + 1
	for _, m := range c.live() {
		if m.err == nil && m.ready <= next {
			return nil
		}
	}
	if next == 0 {
		if err := c.gate(ctx); err != nil {
			return err
		}
		for _, m := range c.live() {
			if m.err != nil {
				c.say("%s: continuing without it: %v", m.host.Name, m.err)
				m.over = true
				_ = m.session.run.Close() // it ends then
			}
		}
	}
	live := c.live()
	if len(live) == 0 || live[0].ready <= next || ctx.Err() != nil {
		return nil
	}
	c.phase = next
	c.start(ctx, live)
	return nil
}

// startAhead is how long before the common start hosts must receive it: a host may still be busy with files that it has
// just laid out.
const startAhead = 100 * time.Millisecond

// start agrees with hosts on the start time of a phase.
func (c *controller) start(ctx context.Context, hosts []*member) {
	// Clocks are compared now: laying out files may have taken hours, in which they drift apart.
	var wait sync.WaitGroup
	readings := make([]clock.Reading, len(hosts))
	for i, m := range hosts {
		wait.Go(func() { readings[i] = m.session.compareClocks(ctx) })
	}
	wait.Wait()
	slowest := time.Duration(0)
	for _, r := range readings {
		slowest = max(slowest, r.Trip)
	}
	at := time.Now().Add(max(startAhead, clock.Ahead(slowest, len(hosts))))
	if c.phase == 0 {
		c.begun = at
	}
	for i, m := range hosts {
		if c.phase == 0 {
			m.offset = readings[i].Offset
		}
		m.error = max(m.error, readings[i].Uncertainty(at))
		m.nominal = append(m.nominal, int64(at.Sub(c.begun)))
		_ = send(m.session.run, &message{Start: &start{Phase: c.phase, UptimeNanos: readings[i].There(at)}}) // the reader sees why it fails
	}
}

func (c *controller) say(format string, args ...any) {
	if c.options.Say != nil {
		c.options.Say(fmt.Sprintf(format, args...))
	}
}

// report combines what hosts have reported.
func (c *controller) report(done bool) *fioreport.Clients {
	out := fioreport.Clients{Done: done, Started: c.begun, Elapsed: max(0, time.Since(c.begun)), Period: c.options.Jobs.Sample}
	for _, m := range c.members {
		one := fioreport.Client{
			Name: m.host.Name, Address: m.host.Address, Port: m.host.PortNumber(), Report: m.report, Own: m.own, Err: m.err,
			ClockOffset: m.offset, ClockError: m.error, StartLate: m.late(),
		}
		if m.session != nil {
			one.Hostname, one.Platform = m.session.hello.Hostname, m.session.hello.Platform
		}
		out.Hosts = append(out.Hosts, one)
	}
	return &out
}

// late is the time from the planned start of a phase to the start of its first thread, in the worst phase. The first phase
// is planned iojob.StartDelay after the zero of the host's axis.
func (m *member) late() time.Duration {
	if m.report == nil {
		return 0
	}
	phases, first := phasesOf(m.jobs), map[int]int64{}
	for i := range m.report.Rows {
		row := &m.report.Rows[i]
		at := row.Account.StartNanos
		p := phases[row.JobIndex]
		if known, ok := first[p]; at > 0 && (!ok || at < known) {
			first[p] = at
		}
	}
	var worst time.Duration
	for p, at := range first {
		if p < len(m.nominal) {
			worst = max(worst, time.Duration(at-m.nominal[p])-iojob.StartDelay)
		}
	}
	return worst
}
