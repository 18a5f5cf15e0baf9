// Package iojob runs fio job files on this machine with the native engine and reports the results, as fio does: every clone
// of a job has its own files, statistics and row, and jobs between two stonewalls run at the same time.
//
//	[]fiojob.Job ──expand──▶ clones with files ──layOut──▶ files that exist ──run──▶ fioreport.Report
//
// It implements `bragg io`; scenarios and agents use the engine without it. It makes and fills regular files as fio does,
// and never writes to a block device unless the caller allows it.
package iojob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob/fiolog"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/shares"
)

// Options define how to run jobs. The zero value is ready to use.
type Options struct {
	// Folder is where relative names of files start from; "" is the current folder of the process.
	Folder string
	// StateFolder is where states of verification are saved and loaded from; "" is Folder.
	StateFolder string
	// Backend does the I/O of all jobs regardless of their ioengine: one of the engine's back ends; "" uses each job's
	// ioengine.
	Backend string
	// Sample is the length of the periods for minimum, maximum and deviation of rates; 0 is half a second, as in fio.
	Sample time.Duration
	// OpenDevice checks a block device before it is written to and returns it open, held exclusively until the jobs have
	// ended; nil refuses all.
	OpenDevice func(path string) (*os.File, error)
	// DropAfter is how late an operation of a rate may be before it is dropped and counted; 0 drops none.
	DropAfter time.Duration
	// Say receives messages about slow work ("laying out file …"), one at a time; may be nil.
	Say func(text string)
	// Watch receives the current report every WatchEvery; may be nil. With WatchSeldom it receives fewer reports if
	// building one takes more than a hundredth of the time.
	Watch       func(r *fioreport.Report)
	WatchEvery  time.Duration
	WatchSeldom bool
	// Intervals receives the results of each row while it runs, one line of JSON per interval; may be nil. IntervalLength
	// is a multiple of Sample; 0 is StreamLengthDefault.
	Intervals      io.Writer
	IntervalLength time.Duration
	// Live receives, before the first operation, a function that returns the current progress of all clones; may be nil.
	Live func(now func() []Live)
	// AllowDevice reports whether a replayed log may name this block device although its job does not; nil: it may not.
	AllowDevice func(path string) bool
	// ReadOnly refuses to replay a log that writes or trims.
	ReadOnly bool
	// LogsAsFio interprets times of logs as fio 3.33 does where that differs from its manual.
	LogsAsFio bool
	// Host is the number of this host among several that run the same jobs, from 0: each has its own offsets and content.
	Host int
	// Start returns the time at which prepared jobs start; nil starts them at once.
	Start func(ctx context.Context, r Ready) (time.Time, error)
}

// Run runs jobs and reports. It returns an error if the jobs cannot run at all (no such file, an option that the engine
// lacks); a job that fails while it runs has its error in its row. A cancelled ctx ends all jobs early, and the report
// covers what they did until then.
func Run(ctx context.Context, jobs []fiojob.Job, o Options) (*fioreport.Report, error) {
	if o.Sample <= 0 {
		o.Sample = fioreport.SampleDefault
	}
	o.Say = inTurn(o.Say)
	if err := checkWaits(jobs); err != nil {
		return nil, err
	}
	o.Sample = samplePeriod(jobs, o.Sample)
	iologs := &ioLogs{}
	defer iologs.close()
	clones, err := expand(jobs, &o, iologs)
	if err != nil {
		return nil, err
	}
	for _, c := range clones {
		if err := c.loadState(&o); err != nil {
			return nil, err
		}
	}
	shareFiles(clones, &o)
	r := &runner{options: o, clones: clones, iologs: iologs}
	if err := r.check(); err != nil {
		return nil, err
	}
	defer r.holdings.release()
	if err := r.holdings.layOut(ctx, clones, o); err != nil {
		return nil, err
	}
	r.axis.set(time.Now())
	r.disks.Add(r.holdings.watched())
	if r.logs, err = r.openLogs(); err != nil {
		return nil, err
	}
	r.openStream()
	newJudges(clones, o.Sample)
	stop := r.watch()
	r.runPhases(ctx)
	stop()
	report := r.report()
	if err := r.closeOutputs(); err != nil {
		report.LogFault = err.Error()
	}
	report.Done = true
	return report, errors.Join(removeUnlinked(clones, r.holdings.files)...)
}

// runner is one Run under way.
type runner struct {
	options   Options
	clones    []*clone
	axis      axis
	disks     fioreport.Disks
	logs      *fiolog.Set
	stream    *stream // nil: no reader
	iologs    *ioLogs
	holdings  holdings
	lifecycle lifecycle
	flows     shares.Flows // of all clones
	ramps     shares.Ramps
}

// check refuses jobs that cannot run, before the first one starts.
func (r *runner) check() error { return errors.Join(r.checkClones(r.clones), r.checkLogs()) }

func (r *runner) checkClones(clones []*clone) error {
	var list diag.List
	for _, c := range clones {
		if c.index > 0 || c.later {
			continue // all clones of a job are alike
		}
		err := r.checkClone(c)
		var faults *diag.ListError
		switch {
		case errors.As(err, &faults):
			list = append(list, faults.List...)
		case err != nil:
			return err
		}
	}
	return list.Err()
}

// checkClone warns about doubtful settings of a clone, and returns those that are wrong.
func (r *runner) checkClone(c *clone) error {
	issues, err := ioengine.Generator{Backend: r.options.Backend, Replay: c.log}.CheckJobs(r.workload(c, 0), []fiojob.Job{c.job})
	for _, d := range issues {
		if d.Severity == diag.SeverityWarning {
			r.options.say("warning: %s", d.Message)
		}
	}
	if option := program.KeepsCached(&c.job); option != "" && r.options.Backend != "null" {
		r.options.say("warning: job %q: %s: reads may come from the page cache, and the numbers are then not those of a device", c.job.Name, option)
	}
	return err
}

func (r *runner) workload(c *clone, start int64) load.Workload {
	w := load.Workload{
		Name: c.job.Name, ConfigName: c.job.Pos.File, Ordinal: r.options.Host<<hostShift + c.number, Instance: 1, StartNanos: start,
		ZeroUnixNanos: r.axis.zero().UnixNano(), IntervalLength: r.options.Sample, Devices: c.devices(),
	}
	if !c.job.RandRepeat && !c.job.Has("randseed") { // a seed that is set always applies, as in fio
		w.Seed = rand.Uint64()
	}
	return w
}

// runPhases runs the phases (the jobs between two stonewalls) one after the other.
func (r *runner) runPhases(ctx context.Context) {
	for from := 0; from < len(r.clones) && ctx.Err() == nil && !r.lifecycle.isOver(); {
		to := from
		for to < len(r.clones) && r.clones[to].phase == r.clones[from].phase {
			to++
		}
		r.runPhase(ctx, r.clones[from:to])
		from = to
	}
}

func (r *runner) runPhase(ctx context.Context, clones []*clone) {
	prepared := make([]ioengine.Run, len(clones))
	ready := Ready{Phase: clones[0].phase}
	late := r.planLater(ctx, clones)
	for i, c := range clones {
		run, err := ioengine.Run{}, late[c]
		if err == nil && c.job.Control.CreateOnly {
			r.finish(c)
			continue // its files exist
		}
		if err == nil {
			run, err = r.prepare(ctx, c)
		}
		if err != nil {
			c.fail(err)
			r.finish(c)
			ready.Faults = append(ready.Faults, fmt.Errorf("job %q: %w", c.job.Name, err))
			continue
		}
		r.control(c, run)
		run.DumpTo(cmp.Or(r.options.StateFolder, r.options.Folder, "."))
		prepared[i] = run
		r.observe(c, run)
	}
	start, ok := r.start(ctx, ready, prepared)
	if !ok {
		clear(prepared) // others may wait for clones that never begin
	}
	r.runClones(ctx, clones, prepared, start)
}

// watch publishes the current report while jobs run.
func (r *runner) watch() (stop func()) {
	if r.options.Watch == nil || r.options.WatchEvery <= 0 {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(r.options.WatchEvery)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				begun := time.Now()
				r.options.Watch(r.report())
				if seldom := 100 * time.Since(begun); r.options.WatchSeldom {
					tick.Reset(max(r.options.WatchEvery, seldom))
				}
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

func (o *Options) say(format string, args ...any) {
	if o.Say != nil {
		o.Say(fmt.Sprintf(format, args...))
	}
}

// inTurn lets one of the goroutines of a run speak at a time.
func inTurn(say func(text string)) func(text string) {
	if say == nil {
		return nil
	}
	var mu sync.Mutex
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		say(text)
	}
}
