package program

import (
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/unit"
)

// CheckAccess refuses what direct access would answer with EINVAL on every operation.
func CheckAccess(job *Job, device load.Device, f *backend.File) error {
	if !f.Direct || f.Align <= 1 {
		return nil
	}
	if job.Replay != nil {
		return checkReplayAccess(job, device, f)
	}
	wrong := func(what string, n int64) error {
		return &diag.Error{
			Code: "misaligned", Exit: diag.ExitData,
			Message: fmt.Sprintf("job %q: %s %d is not a multiple of %d bytes, which direct access to device %q needs",
				job.Fio.Name, what, n, f.Align, device.Name),
			Hint: "change it, or use direct=0",
		}
	}
	for d, active := range job.Draws() {
		if !active {
			continue
		}
		if n := job.Sizes[d].Misfit(f.Align); n != 0 {
			return wrong("block size", n)
		}
		if n := job.Align(d); n%f.Align != 0 {
			return wrong("alignment", n)
		}
	}
	if n := job.Sequel.Misfit(f.Align); n != 0 {
		return wrong("block size", n)
	}
	for _, c := range job.Clones {
		for _, s := range c.Streams {
			if n := s.Region.Start; n%f.Align != 0 {
				return wrong("offset", n)
			}
			if n := s.Region.ZoneStride; n%f.Align != 0 {
				return wrong("distance of zones", n)
			}
		}
	}
	if n := job.Fio.Sequence; !job.Random && n%f.Align != 0 {
		return wrong("skip", n)
	}
	return nil
}

// checkReplayAccess is CheckAccess for a job that replays.
func checkReplayAccess(job *Job, device load.Device, f *backend.File) error {
	if job.Replay.Align%f.Align == 0 {
		return nil
	}
	hint := fmt.Sprintf("replay_align=%d lowers offsets, or use direct=0", f.Align)
	return &diag.Error{
		Code: "misaligned", Exit: diag.ExitData, Hint: hint,
		Message: fmt.Sprintf("offsets and lengths in iolog %q are multiples of %d bytes, and direct access to %q needs %d", job.Replay.Path, job.Replay.Align, device.Name, f.Align),
	}
}

// Grows reports whether the files of a job need not have their length before it begins: what is only written, and gets no space
// beforehand, is as long as what was written. Memory cannot be mapped behind the end of a file.
func Grows(j *fiojob.Job) bool {
	return j.Layout.Fallocate == "none" && !j.Layout.Overwrite && (j.ReadWrite == "write" || j.ReadWrite == "randwrite") &&
		j.IOEngine != "mmap" && j.IOEngine != "falloc" && !j.Control.FillDevice && !j.Verify.Only
}

// CheckEnds refuses a device that is smaller than the workload states.
func CheckEnds(job *Job, devices []load.Device, files []*backend.File) error {
	if job.Kind == backend.KindFalloc {
		return nil // it makes files longer
	}
	for _, c := range job.Clones {
		for _, s := range c.Streams {
			grows := (job.Fio.Layout.CreateOnOpen || Grows(&job.Fio)) && !files[s.Device].Device
			if end := s.Region.End(); end > files[s.Device].Size && !grows {
				return &diag.Error{
					Code: "device-too-small", Exit: diag.ExitUnavailable,
					Message: fmt.Sprintf("job %q needs device %q up to %s, but it has %s", job.Fio.Name,
						devices[s.Device].Name, unit.FormatBytes(end), unit.FormatBytes(files[s.Device].Size)),
				}
			}
		}
	}
	return nil
}
