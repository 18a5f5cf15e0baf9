package vdbench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/unit"
)

// gaugeRun is the number of the run that an interval belongs to.
var gaugeRun = interval.Gauge{Name: "run", Meaning: interval.GaugeStage}

// plan describes all runs, or their prefill.
func (c *config) plan(g Generator, w *load.Workload) (load.Plan, error) {
	p := load.Plan{Timed: true, Notes: c.notes(w)}
	if w.Prefill {
		prefill, err := c.prefill(w)
		if err != nil {
			return p, err
		}
		plan, err := g.engine().Plan(prefill)
		plan.Engine = c.engine(plan.Engine)
		return plan, err
	}
	for i := range c.runs {
		if err := c.planRun(g, w, i, &p); err != nil {
			return p, err
		}
	}
	p.Engine, p.Extents = c.engine(p.Engine), extent.Merge(p.Extents)
	p.TakesMost, p.TakesShortest = c.takes(), c.shortest
	if !c.endsEarly() {
		p.TakesLeast = p.TakesMost
	}
	return p, nil
}

// planRun adds one run to a plan.
func (c *config) planRun(g Generator, w *load.Workload, i int, p *load.Plan) error {
	r := &c.runs[i]
	compiled, err := c.compile(g, w, r)
	if err != nil {
		return err
	}
	p.Engine = compiled.Engine()
	p.Extents = append(p.Extents, compiled.Extents()...)
	p.MemoryBytes = max(p.MemoryBytes, compiled.Memory())
	written, paces := compiled.BytesWritten(), int64(0)
	for k := range compiled.Jobs {
		job := compiled.Jobs[k].Plan()
		job.Name = fmt.Sprintf("%d %s", i+1, job.Name)
		job.Pauses = job.Pauses || len(c.runs) > 1
		s := &r.streams[k]
		mean := 0.0
		for _, share := range s.sizes {
			mean += float64(share.Bytes) * share.Percent / 100
		}
		writes := job.RateIOPS * float64(100-s.read) / 100 * mean
		if written < 0 && job.Writes && writes > 0 {
			paces += int64(writes)
		}
		p.Jobs = append(p.Jobs, job)
		p.BlockBytesMax = max(p.BlockBytesMax, job.BlockMax)
	}
	bytes := int64(float64(paces) * (r.warmup + r.elapsed).Seconds())
	switch {
	case written >= 0:
		p.BytesWritten += max(0, written)
	case r.rate > 0 && p.BytesWritten >= 0:
		p.BytesWritten += bytes
	default:
		p.BytesWritten = -1
	}
	pause := ""
	if r.pause > 0 && i > 0 {
		pause = fmt.Sprintf(" after a pause of %s", unit.FormatDuration(r.pause))
	}
	text := fmt.Sprintf("run %d%s: %s", i+1, pause, r.name)
	if r.warmup > 0 {
		text += fmt.Sprintf("; warm-up %s", unit.FormatDuration(r.warmup))
	}
	p.Notes = append(p.Notes, text+c.inRehearsal(r.elapsed))
	for _, note := range compiled.Notes() {
		if !slices.Contains(p.Notes, note) {
			p.Notes = append(p.Notes, note)
		}
	}
	return nil
}

// compile works out the jobs of a run. The rate of a point of a curve is not known then.
func (c *config) compile(g Generator, w *load.Workload, r *run) (*program.Program, error) {
	jobs, issues, err := r.jobs(*w, r.elapsed, r.warmup)
	if err == nil {
		var compiled *program.Program
		if compiled, err = program.Compile(r.as(*w, r.elapsed, r.warmup), jobs, nil); err == nil && g.Backend != "" {
			err = compiled.Choose(g.Backend)
		}
		if err == nil {
			compiled.FallBack()
			return compiled, nil
		}
		issues = compiled.Issues
	}
	var many *diag.ListError
	if errors.As(err, &many) {
		return nil, &diag.Error{Code: "not-translated", Exit: diag.ExitData, Message: r.name + ": " + many.List[0].Message}
	}
	return nil, errors.Join(err, issues.Err())
}

// engine names the generator, whichever engine runs the jobs.
func (c *config) engine(e interval.Engine) interval.Engine {
	e.Name, e.Gauges, e.Stages, e.Loop = Name, []interval.Gauge{gaugeRun}, c.stages(), interval.LoopClosed
	if c.paced() {
		e.Loop = interval.LoopOpen
	}
	return e
}

// stagesMax is how many runs a report shows one by one.
const stagesMax = 100

// stages are the runs, if there are several, or one has a warm-up. Their statistics are without the first interval or the warm-up, as in
// vdbench.
func (c *config) stages() (all []interval.Stage) {
	if len(c.runs) > stagesMax || len(c.runs) == 1 && c.runs[0].warmup == 0 {
		return nil
	}
	for i := range c.runs {
		r := &c.runs[i]
		skip := r.interval
		if r.warmup > 0 {
			skip = r.warmup
		}
		all = append(all, interval.Stage{Name: r.short, Curve: r.series, Rate: max(r.rate, r.curve), SkipNanos: int64(skip)})
	}
	return all
}

// paced reports whether any run has a rate.
func (c *config) paced() bool {
	for i := range c.runs {
		if c.runs[i].rate > 0 || c.runs[i].curve > 0 {
			return true
		}
	}
	return false
}

// endsEarly reports whether something else than time may end a run.
func (c *config) endsEarly() bool {
	for i := range c.runs {
		r := &c.runs[i]
		if r.maxData > 0 || r.stop > 0 || len(r.streams) > 0 && r.streams[0].toEnd {
			return true
		}
	}
	return false
}

// notes says what the native engine does otherwise than vdbench.
func (c *config) notes(w *load.Workload) (notes []string) {
	notes = append(notes, "a native translation of the parameter file: vdbench itself does not run")
	if w.Runtime > 0 && w.Runtime < c.takes() {
		notes = append(notes, fmt.Sprintf("the runs take %s, and the load ends after %s", unit.FormatDuration(c.takes()), unit.FormatDuration(w.Runtime)))
	}
	if c.paced() {
		notes = append(notes, "operations that are late are worked off, and their response time counts from when they were due; vdbench's counts from the start of the operation")
	}
	for i := range c.runs {
		if r := &c.runs[i]; len(r.streams) > 0 && r.streams[0].repeat > 0 {
			return append(notes, "duplicates repeat earlier writes; vdbench ties them to places")
		}
	}
	return notes
}

// prefillDepth is the queue depth of a prefill.
const prefillDepth = "8"

// prefill is a workload that writes once what all runs use.
func (c *config) prefill(w *load.Workload) (load.Workload, error) {
	next := *w
	next.ConfigName, next.Options, next.Config = c.file.Name, map[string]string{"prefill_iodepth": prefillDepth}, ""
	seen := map[extent.Extent]bool{}
	for i := range c.runs {
		r := &c.runs[i]
		for k := range r.streams {
			s := &r.streams[k]
			e := extent.Extent{Device: s.device, Offset: s.place.start, Length: s.place.length}
			if seen[e] {
				continue
			}
			seen[e] = true
			one := run{name: r.name, streams: []stream{*s}}
			one.streams[0].name = fmt.Sprintf("%d-%s", i+1, s.name)
			next.Config += one.text(time.Second, 0)
		}
	}
	return next, nil
}
