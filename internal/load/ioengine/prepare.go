package ioengine

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/content"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/shares"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
	"github.com/braggdev/bragg/internal/load/ioengine/verifying"
)

// prepare opens the devices and builds the workers of a program.
func prepare(p *program.Program) (*instance, error) {
	in := &instance{program: p, names: make([]string, len(p.Workload.Devices))}
	for i, d := range p.Workload.Devices {
		in.names[i] = d.Name
	}
	in.shared.devices = p.Workload.Devices
	in.shared.openLoop = p.OpenLoop
	if err := in.build(); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

func (in *instance) build() error {
	for phase := 0; ; phase++ {
		workers, err := in.buildPhase(phase)
		if err != nil {
			return err
		}
		if len(workers) == 0 {
			in.noteUnwritten()
			in.noteCached()
			if phase > 0 {
				dropCaches(in.phases[0])
			}
			Run{in}.ShareFlows(&shares.Flows{}, true)
			Run{in}.ShareRamps(&shares.Ramps{})
			return nil
		}
		in.phases = append(in.phases, workers)
	}
}

// buildPhase makes the workers for the jobs between two stonewalls. Lanes of io_uring and null share as many workers as
// there are CPUs; a lane of psync blocks its thread and has a worker of its own.
func (in *instance) buildPhase(phase int) ([]*worker, error) {
	var workers []*worker
	groups := map[backend.Kind][]*worker{}
	for i := range in.program.Jobs {
		job := &in.program.Jobs[i]
		if job.Phase != phase {
			continue
		}
		if err := thread.CheckNodes(job.Fio.Name, &job.Fio.Control); err != nil {
			return nil, err
		}
		files, err := in.open(job)
		if err != nil {
			return nil, err
		}
		for c := range job.Clones {
			group := groups[job.Kind]
			w := &worker{shared: &in.shared, equipment: equipment{kind: job.Kind, pool: content.Pool()}}
			switch n := len(group); {
			case job.Own(c):
				w.settings = thread.SettingsOf(&job.Fio.Control, c)
			case job.Kind.Blocks() || n < runtime.NumCPU():
				groups[job.Kind] = append(group, w)
			default:
				w = group[c%n]
				for _, other := range group {
					if len(other.lanes) < len(w.lanes) {
						w = other
					}
				}
			}
			if len(w.lanes) == 0 {
				workers = append(workers, w)
			}
			l := newLane(&job.Clones[c], job, files)
			l.clone = c
			l.verify = verifying.New(&l.Queue, l.timed, in.program.Workload.Ordinal+in.lanes+1)
			in.lanes++
			w.watched = w.watched || l.watch != nil
			w.lanes = append(w.lanes, l)
		}
	}
	for i, w := range workers {
		if err := in.equip(w); err != nil {
			for _, equipped := range workers[:i+1] {
				err = errors.Join(err, equipped.close())
			}
			return nil, err
		}
	}
	return workers, nil
}

// open returns the files of a job by device. Jobs that open a device in the same way share it.
func (in *instance) open(job *program.Job) ([]*backend.File, error) {
	files := make([]*backend.File, len(in.program.Workload.Devices))
	if job.Kind == backend.KindNull || job.Kind == backend.KindNames || job.Kind == backend.KindCPU {
		return files, nil
	}
	how := backend.Access{Mapped: job.Kind == backend.KindMmap, Direct: job.Fio.Direct, Sync: job.Fio.Sync, Hint: job.Fio.WriteHint,
		NoWait: job.Fio.NoWait, Uncached: job.Fio.Uncached, Atomic: job.Fio.Atomic && job.Writes, Advice: job.Advice()}
	for _, c := range job.Clones {
		for _, s := range c.Streams {
			if files[s.Device] != nil {
				continue
			}
			device := in.program.Workload.Devices[s.Device]
			how.Write = job.WritesTo(s.Device)
			f, err := in.openOnce(device, how)
			if err == nil {
				err = program.CheckAccess(job, device, f)
			}
			if err == nil && f.Atomic != 0 {
				err = program.CheckAtomicWrites(job, device, f.Limits.Smallest, f.Limits.Largest)
			}
			if err != nil {
				return nil, err
			}
			files[s.Device] = f
			o, control := &in.opened[f.Index], &job.Fio.Control
			o.flush = o.flush || control.FSyncOnClose && how.Write
			o.flushAll = o.flushAll || control.EndSyncFS && how.Write
		}
	}
	if err := program.CheckEnds(job, in.program.Workload.Devices, files); err != nil {
		return nil, err
	}
	for i, f := range files {
		if f == nil || job.Kind != backend.KindMmap {
			continue
		}
		if err := f.MapInto(job.WritesTo(i), job.Advice()); err != nil {
			return nil, &diag.Error{
				Code: "map-file", Message: fmt.Sprintf("job %q", job.Fio.Name), Err: err, Exit: diag.ExitUnavailable,
			}
		}
	}
	return files, nil
}

func (in *instance) openOnce(device load.Device, how backend.Access) (*backend.File, error) {
	for _, o := range in.opened {
		if o.device == device.Name && o.access == how {
			return o.file, nil
		}
	}
	path, err := in.admit(device, how)
	if err != nil {
		return nil, err
	}
	f, err := backend.Open(path, how)
	if err != nil {
		return nil, notOpened(device, err)
	}
	f.Index = int32(len(in.opened))
	in.opened = append(in.opened, openFile{device: device.Name, access: how, file: f})
	return f, nil
}

// equip gives a worker its slots, buffers, recorders and back end.
func (in *instance) equip(w *worker) error {
	total, bytes := 0, int64(0)
	for i := range w.lanes {
		total += w.lanes[i].Job.Places()
		bytes += w.lanes[i].Job.BufferCount() * w.lanes[i].Job.BufferBytes()
	}
	memory, err := backend.NewArena(int(bytes))
	if err != nil {
		return err
	}
	w.arena = memory
	if err := w.settings.Bind(memory); err != nil {
		return err
	}
	w.slots = make([]backend.Slot, total)
	w.batch.Slots = make([]int32, total)
	w.done = make([]backend.Completion, total)
	next, at := 0, int64(0)
	for i := range w.lanes {
		l := &w.lanes[i]
		l.Batch, l.All = &w.batch, w.slots
		if err := l.replay.Start(); err != nil {
			return err
		}
		size, count := l.Job.BufferBytes(), l.Job.BufferCount()
		places := l.Job.Places()
		l.Free = make([]int32, 0, places)
		l.slots = w.slots[next : next+places]
		for k := range places {
			s := &w.slots[next]
			s.Clone, s.Vectored = int32(i), w.kind == backend.KindPvsync2
			if count > 0 {
				from := at + int64(k)%count*size
				s.Buffer = memory[from : from+size : from+size]
			}
			l.Free = append(l.Free, int32(next))
			next++
		}
		at += count * size
	}
	w.report = &verifying.Report{Outcome: &w.account.Outcome, Stop: &in.shared.stop, Devices: in.shared.devices}
	for i := range w.lanes {
		w.account.ReservePriorities(w.lanes[i].Job)
	}
	w.Tally = measuring.NewTally(func() *measuring.Recorder { return recorderOf(w.lanes, w.shared) }, &w.shared.splits)
	return in.equipBackend(w)
}

// equipBackend gives a worker that has its slots and buffers what does the operations.
func (in *instance) equipBackend(w *worker) (err error) {
	switch w.kind {
	case backend.KindNull:
		w.backend = backend.Null{}
	case backend.KindPsync, backend.KindPvsync2, backend.KindMmap:
		b := backend.NewPsync(w.slots, w.kind)
		b.Settings = w.settings
		if w.lanes[0].Job.Chains() {
			b.Depth = 1
		}
		w.backend = b
	case backend.KindNames:
		w.backend = backend.NewNames(w.slots, w.shared.devices, w.lanes[0].Job.Fio.IOEngine)
	case backend.KindFalloc, backend.KindTruncate, backend.KindCPU:
		w.backend = backend.NewCalls(w.slots, w.kind, &w.lanes[0].Job.Fio.Control.CPU, &w.shared.stop)
	case backend.KindLibaio:
		if w.backend, err = backend.NewLibaio(w.slots); err != nil {
			return &diag.Error{Code: "libaio", Message: err.Error(), Exit: diag.ExitUnavailable}
		}
	default:
		files := make([]*backend.File, len(in.opened))
		for i := range in.opened {
			files[i] = in.opened[i].file
		}
		if w.backend, err = backend.NewUring(w.slots, w.arena, files, trims(w.lanes)); err != nil {
			return &uringError{err}
		}
	}
	return nil
}

// uringError is a ring that could not be made for a worker.
type uringError struct{ error }

func (e *uringError) Unwrap() error { return e.error }
