package ioengine

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/content"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
	"github.com/braggdev/bragg/internal/unit"
)

// prepare opens the devices and builds the workers of a program.
func prepare(p *program) (*instance, error) {
	in := &instance{program: p, names: make([]string, len(p.workload.Devices))}
	for i, d := range p.workload.Devices {
		in.names[i] = d.Name
	}
	in.shared.devices = p.workload.Devices
	in.shared.openLoop = p.openLoop
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
			in.enterFlows(&Flows{})
			in.enterRamps(&Ramps{})
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
	for i := range in.program.jobs {
		job := &in.program.jobs[i]
		if job.phase != phase {
			continue
		}
		if err := thread.CheckNodes(job.job.Name, &job.job.Control); err != nil {
			return nil, err
		}
		files, err := in.open(job)
		if err != nil {
			return nil, err
		}
		for c := range job.clones {
			group := groups[job.kind]
			var w *worker
			if job.own(c) {
				w = &worker{shared: &in.shared, kind: job.kind, pool: content.Pool(), settings: thread.SettingsOf(&job.job.Control, c)}
				workers = append(workers, w)
			} else if n := len(group); job.kind.Blocks() || n < runtime.NumCPU() {
				w = &worker{shared: &in.shared, kind: job.kind, pool: content.Pool()}
				groups[job.kind] = append(group, w)
				workers = append(workers, w)
			} else {
				w = group[c%n]
				for _, other := range group {
					if len(other.lanes) < len(w.lanes) {
						w = other
					}
				}
			}
			l := newLane(&job.clones[c], job, files)
			l.clone = c
			l.verify = newVerifier(&l, in.program.workload.Ordinal+in.lanes+1)
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
func (in *instance) open(job *jobSpec) ([]*backend.File, error) {
	files := make([]*backend.File, len(in.program.workload.Devices))
	if job.kind == backend.KindNull || job.kind == backend.KindNames || job.kind == backend.KindCPU {
		return files, nil
	}
	how := backend.Access{Mapped: job.kind == backend.KindMmap, Direct: job.job.Direct, Sync: job.job.Sync, Hint: job.job.WriteHint,
		NoWait: job.job.NoWait, Uncached: job.job.Uncached, Atomic: job.job.Atomic && job.writes, Advice: job.advice()}
	for _, c := range job.clones {
		for _, s := range c.streams {
			if files[s.device] != nil {
				continue
			}
			device := in.program.workload.Devices[s.device]
			how.Write = job.writesTo(s.device)
			f, err := in.openOnce(device, how)
			if err == nil {
				err = checkAccess(job, device, f)
			}
			if err == nil && f.Atomic != 0 {
				err = job.checkAtomicWrites(device, f.Limits.Smallest, f.Limits.Largest)
			}
			if err != nil {
				return nil, err
			}
			files[s.device] = f
			o, control := &in.opened[f.Index], &job.job.Control
			o.flush = o.flush || control.FSyncOnClose && how.Write
			o.flushAll = o.flushAll || control.EndSyncFS && how.Write
		}
	}
	if err := in.checkEnds(job, files); err != nil {
		return nil, err
	}
	for i, f := range files {
		if f == nil || job.kind != backend.KindMmap {
			continue
		}
		if err := f.MapInto(job.writesTo(i), job.advice()); err != nil {
			return nil, &diag.Error{
				Code: "map-file", Message: fmt.Sprintf("job %q", job.job.Name), Err: err, Exit: diag.ExitUnavailable,
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

// checkAccess refuses what direct access would answer with EINVAL on every operation.
func checkAccess(job *jobSpec, device load.Device, f *backend.File) error {
	if !f.Direct || f.Align <= 1 {
		return nil
	}
	if job.replay != nil {
		return checkReplayAccess(job, device, f)
	}
	wrong := func(what string, n int64) error {
		return &diag.Error{
			Code: "misaligned", Exit: diag.ExitData,
			Message: fmt.Sprintf("job %q: %s %d is no multiple of %d bytes, which direct access to device %q needs",
				job.job.Name, what, n, f.Align, device.Name),
			Hint: "change it, or use direct=0",
		}
	}
	for d, active := range job.draws() {
		if !active {
			continue
		}
		if n := job.sizes[d].Misfit(f.Align); n != 0 {
			return wrong("block size", n)
		}
		if n := job.align(d); n%f.Align != 0 {
			return wrong("alignment", n)
		}
	}
	if n := job.sequel.Misfit(f.Align); n != 0 {
		return wrong("block size", n)
	}
	for _, c := range job.clones {
		for _, s := range c.streams {
			if n := s.region.Start; n%f.Align != 0 {
				return wrong("offset", n)
			}
			if n := s.region.ZoneStride; n%f.Align != 0 {
				return wrong("distance of zones", n)
			}
		}
	}
	if n := job.job.Sequence; !job.random && n%f.Align != 0 {
		return wrong("skip", n)
	}
	return nil
}

// checkEnds refuses a device that is smaller than the workload was told.
func (in *instance) checkEnds(job *jobSpec, files []*backend.File) error {
	if job.kind == backend.KindFalloc {
		return nil // it makes files longer
	}
	for _, c := range job.clones {
		for _, s := range c.streams {
			grows := (job.job.Layout.CreateOnOpen || Grows(&job.job)) && !files[s.device].Device
			if end := s.region.End(); end > files[s.device].Size && !grows {
				return &diag.Error{
					Code: "device-too-small", Exit: diag.ExitUnavailable,
					Message: fmt.Sprintf("job %q needs device %q up to %s, but it has %s", job.job.Name,
						in.names[s.device], unit.FormatBytes(end), unit.FormatBytes(files[s.device].Size)),
				}
			}
		}
	}
	return nil
}

// Grows tells whether the files of a job need not have their length before it begins: what is only written, and gets no space
// beforehand, is as long as what was written. Memory cannot be mapped behind the end of a file.
func Grows(j *fiojob.Job) bool {
	return j.Layout.Fallocate == "none" && !j.Layout.Overwrite && (j.ReadWrite == "write" || j.ReadWrite == "randwrite") &&
		j.IOEngine != "mmap" && j.IOEngine != "falloc" && !j.Control.FillDevice && !j.Verify.Only
}

// equip gives a worker its slots, buffers, recorders and back end.
func (in *instance) equip(w *worker) error {
	total, bytes := 0, int64(0)
	for i := range w.lanes {
		total += w.lanes[i].job.places()
		bytes += w.lanes[i].job.bufferCount() * w.lanes[i].job.bufferBytes()
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
	w.batch = make([]int32, total)
	w.done = make([]backend.Completion, total)
	next, at := 0, int64(0)
	for i := range w.lanes {
		l := &w.lanes[i]
		l.index = int32(i)
		if err := l.replay.start(); err != nil {
			return err
		}
		size, count := l.job.bufferBytes(), l.job.bufferCount()
		places := l.job.places()
		l.free = make([]int32, 0, places)
		l.slots = w.slots[next : next+places]
		for k := range places {
			s := &w.slots[next]
			s.Clone, s.Vectored = int32(i), w.kind == backend.KindPvsync2
			if count > 0 {
				from := at + int64(k)%count*size
				s.Buffer = memory[from : from+size : from+size]
			}
			l.free = append(l.free, int32(next))
			next++
		}
		at += count * size
	}
	w.reservePriorities()
	w.record = w.newRecorder()
	for range sparesOfWorker {
		w.spare = append(w.spare, w.newRecorder())
	}
	w.periods = make([]period, 0, 8)
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
		if w.lanes[0].job.chains() {
			b.Depth = 1
		}
		w.backend = b
	case backend.KindNames:
		w.backend = backend.NewNames(w.slots, w.shared.devices, w.lanes[0].job.job.IOEngine)
	case backend.KindFalloc, backend.KindTruncate, backend.KindCPU:
		w.backend = backend.NewCalls(w.slots, w.kind, &w.lanes[0].job.job.Control.CPU, &w.shared.stop)
	case backend.KindLibaio:
		if w.backend, err = backend.NewLibaio(w.slots); err != nil {
			return &diag.Error{Code: "libaio", Message: err.Error(), Exit: diag.ExitUnavailable}
		}
	default:
		files := make([]*backend.File, len(in.opened))
		for i := range in.opened {
			files[i] = in.opened[i].file
		}
		if w.backend, err = backend.NewUring(w.slots, w.arena, files, w.trims()); err != nil {
			return &uringError{err}
		}
	}
	return nil
}

// own tells whether a clone needs threads that no other clone uses.
func (s *jobSpec) own(clone int) bool {
	return thread.SettingsOf(&s.job.Control, clone) != thread.Settings{} || s.job.Control.ThinkTimeSpin > 0
}
