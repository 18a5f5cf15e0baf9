package mlperf

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/load/program"
)

// instance is one prepared load or prefill.
type instance struct {
	workload load.Workload
	config   *config
	room     *room
	data     *dataset
	notes    []interval.EngineNote
	out      *record
	used     bool
}

var (
	_ load.Describer = (*instance)(nil)
	_ load.Timed     = (*instance)(nil)
	_ load.Teller    = (*instance)(nil)
)

func (in *instance) prepare(ctx context.Context) (err error) {
	c := in.config
	if in.room, err = openRoom(c, &in.workload); err != nil {
		return err
	}
	if !in.workload.Prefill {
		if err := in.look(); err != nil {
			return err
		}
	}
	if c.saves() {
		for _, text := range c.saving.scaled() {
			in.note("scaled", text)
		}
		return nil
	}
	in.data = c.train.dataset(in.room.path, &in.workload)
	if in.workload.Prefill {
		return nil
	}
	if missing := in.data.missing(); len(missing) > 0 {
		return c.noDataSet(len(missing))
	}
	if text := c.train.reads(&in.workload.Remote); text != "" {
		in.note("data-set", text)
	}
	if text := c.train.small(memoryBytes()); text != "" {
		in.note(interval.NoteSmallData, text)
	}
	if len(c.train.changed) > 0 {
		in.note("open-division", c.train.open())
	}
	return in.data.forgetAll(ctx)
}

// noDataSet is the error for a data set that is not there, or not all of it.
func (c *config) noDataSet(missing int) error {
	e := &diag.Error{Code: "no-data-set", Exit: diag.ExitData, Message: fmt.Sprintf("%s has no data set with these parameters", c.place),
		Hint: "add workload.PrefillRun before the load"}
	if t := &c.train; t.shared {
		e.Message += fmt.Sprintf(": the files of %d of %d VMs are missing", missing, t.vms)
		e.Hint += fmt.Sprintf(", on as many VMs; folder %s must be the same mount in all of them", c.folder)
	}
	return e
}

// look finds out what the data is stored on.
func (in *instance) look() error {
	if err := in.room.ready(); err != nil {
		return err
	}
	f, err := os.Open(in.room.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if memory := blockdev.InMemory(f); memory != "" {
		in.note(interval.NoteMemory, memory)
	}
	if text := in.room.mount(); text != "" {
		in.note("mount", text)
	}
	return nil
}

func (in *instance) note(code interval.NoteCode, text string) {
	in.notes = append(in.notes, interval.EngineNote{Code: code, Device: in.config.disk, Text: text})
}

// Engine adds what the machine has; see load.Describer.
func (in *instance) Engine() interval.Engine {
	e := in.config.engine(&in.workload.Remote)
	e.Notes = in.notes
	e.Backends = append(e.Backends, in.room.storage()...)
	return e
}

// SetTime places the workload on the run's axis; see load.Timed.
func (in *instance) SetTime(zeroUnixNanos, startNanos int64) {
	in.workload.ZeroUnixNanos, in.workload.StartNanos = zeroUnixNanos, startNanos
}

// Outputs returns the result of every epoch, trial or checkpoint; see load.Teller.
func (in *instance) Outputs() []load.Output {
	if in.out == nil || in.out.text.Len() == 0 {
		return nil
	}
	text := in.out.text.String()
	return []load.Output{{Name: "mlperf.txt", Text: text[:min(len(text), load.OutputBytesMax)]}}
}

// Close releases the folder.
func (in *instance) Close() error {
	in.used = true
	room := in.room
	in.room = nil
	return room.close()
}

// Run runs the load or the prefill; see load.Instance.
func (in *instance) Run(ctx context.Context, sink load.Sink) error {
	if in.used {
		return fmt.Errorf("run workload %q: it ran before or is closed", in.workload.Name)
	}
	defer func() { _ = in.Close() }()
	w := in.workload
	axis := program.NewAxis(w.ZeroUnixNanos)
	axis.WaitUntil(ctx, w.StartNanos)
	in.out = &record{to: program.Recorder{Workload: w, Sink: sink}, whole: result{au: math.NaN()}, inStep: inStep(&w.Remote),
		search: in.config.train.search, kept: math.NaN()}
	others, err := in.join(ctx, axis)
	began := axis.Now()
	in.out.to.Begin(began)
	in.out.to.Gauges = interval.UnknownGauges(len(in.Engine().Gauges))
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.Runtime > 0 && !w.Prefill {
		limited, cancel = context.WithTimeout(ctx, w.Runtime)
		defer cancel()
	}
	if err == nil {
		done := make(chan error, 1)
		work := in.work(axis, others)
		go func() { done <- others.leave(limited, work(limited)) }()
		err = in.follow(axis, done)
	}
	end := axis.Now()
	if r := w.Runtime; r > 0 && !w.Prefill && ctx.Err() == nil && err == nil && limited.Err() != nil {
		end = max(began, in.out.to.First()) + int64(r)
	}
	in.out.finish(end)
	return program.Outcome(ctx, w.Name, err)
}

// work is what this instance does.
func (in *instance) work(axis program.Axis, others *together) func(context.Context) error {
	c := in.config
	switch {
	case c.saves():
		s := &saver{checkpointing: &c.saving, dir: in.room.path, key: load.KeyOf(load.Key(in.workload.Seed, uint64(in.workload.Ordinal)), in.workload.Group), out: in.out, axis: axis, others: others}
		s.mine = s.of(in.workload.Remote.Rank)
		if in.workload.Prefill {
			return func(context.Context) error { return in.room.ready() }
		}
		return s.run
	case in.workload.Prefill:
		return func(ctx context.Context) error {
			if err := in.room.ready(); err != nil {
				return err
			}
			began := axis.Now()
			return in.data.generate(ctx, func(_ int, bytes int64) {
				now := axis.Now()
				in.out.add(program.Operation{Kind: opFile, End: now, Latency: now - began, Bytes: uint64(bytes)})
				began = now
			})
		}
	}
	m := &meter{compute: int64(c.train.on.compute), batch: c.train.on.batch, ahead: c.train.ahead()}
	in.out.meter, in.out.sample = m, c.train.model.recordBytes
	t := &trainer{training: &c.train, data: in.data, meter: m, out: in.out, axis: axis, others: others, rank: in.data.rank}
	if c.train.search {
		return t.find
	}
	return func(ctx context.Context) error {
		err := t.train(ctx, in.workload.Runtime > 0)
		in.out.sum(m.sofar(), c.train.model.threshold)
		in.out.sumOfAll(c.train.model.threshold)
		return err
	}
}

// follow delivers intervals until the work has ended.
func (in *instance) follow(axis program.Axis, done <-chan error) error {
	period := int64(in.out.to.Period())
	for {
		now := axis.Now()
		next := (now/period + 1) * period
		timer := time.NewTimer(time.Duration(next - now))
		select {
		case err := <-done:
			timer.Stop()
			return err
		case <-timer.C:
			in.out.look(axis.Now(), next)
		}
	}
}
