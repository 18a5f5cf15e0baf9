package program

import (
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
)

// Atomic writes (RWF_ATOMIC, Linux 6.11): after a crash all of a write is there or nothing of it. The kernel does them with
// direct access only, where the device can, and refuses each that is not a power of two, too small, too large, or not at a
// multiple of its size. All of that is checked before the first.

// checkAtomic refuses atomic=1 where the job itself rules it out.
func (p *Program) checkAtomic(j *fiojob.Job, s *Job) {
	if !j.Atomic || !s.Writes || s.Kind == backend.KindNull {
		return
	}
	if s.Kind == backend.KindMmap || s.Kind.Dataless() {
		p.Issues.Errorf(p.optionPos(j, "atomic"), "not-atomic", "job %q: writes of ioengine=%s cannot be atomic", j.Name, j.IOEngine)
	}
	s.Fio.Direct = true // as in fio
}

// CheckAtomicWrites refuses writes that the kernel would answer with EINVAL on a device that takes atomic ones of some sizes.
func CheckAtomicWrites(s *Job, device load.Device, smallest, largest int64) error {
	if !s.Writes {
		return nil
	}
	wrong := func(format string, args ...any) error {
		return &diag.Error{
			Code: "atomic-writes", Exit: diag.ExitData,
			Message: fmt.Sprintf("job %q: atomic=1: %s", s.Fio.Name, fmt.Sprintf(format, args...)),
			Hint: fmt.Sprintf("device %q takes atomic writes of %d to %d bytes, powers of two at multiples of their size",
				device.Name, smallest, largest),
		}
	}
	if s.Replay != nil {
		return wrong("the sizes and places of a log are not checked beforehand")
	}
	var err error
	list := &s.Sizes[interval.Write]
	if list.Steps > 1 || list.Span > 0 {
		return wrong("sizes of a range are not all powers of two; take bssplit")
	}
	list.Each(func(size int64, _ float64) {
		switch {
		case err != nil:
		case size&(size-1) != 0 || size < smallest || size > largest:
			err = wrong("blocks of %d bytes cannot be written", size)
		case s.Align(int(interval.Write))%size != 0:
			err = wrong("offsets are multiples of %d and not of %d bytes", s.Align(int(interval.Write)), size)
		case !s.Random && !list.Fixed():
			err = wrong("blocks of several sizes one after the other do not lie at multiples of their size")
		}
		for _, c := range s.Clones {
			for _, stream := range c.Streams {
				if r := &stream.Region; err == nil && (r.Start%size != 0 || r.ZoneStride%size != 0) {
					err = wrong("the region begins at %d, which is not a multiple of %d bytes", r.Start, size)
				}
			}
		}
		if skip := s.Fio.Sequence; err == nil && !s.Random && skip%size != 0 {
			err = wrong("a skip of %d is not a multiple of %d bytes", skip, size)
		}
	})
	return err
}
