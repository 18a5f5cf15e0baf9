package program

import (
	"fmt"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/content"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
)

// compileReplay works out a job that replays a log: its directions, sizes and files are those of the log. The devices of
// the workload are the log's files, in their order.
func (p *Program) compileReplay(j *fiojob.Job, spec *Job, key uint64) {
	log := p.replay
	if log == nil {
		p.Issues.Add(diag.Diagnostic{
			Code: "engine-lacks-option", Pos: p.optionPos(j, "read_iolog"), Width: len("read_iolog"),
			Message: fmt.Sprintf("job %q: a log is replayed by bragg io only", j.Name),
		})
		return
	}
	spec.Reads = log.Operations[iolog.Read] > 0
	spec.Writes = log.Operations[iolog.Write] > 0
	spec.Trims = log.Operations[iolog.Trim] > 0
	spec.Replay, spec.Runtime = log, j.Runtime
	for d, active := range spec.Active() {
		if active {
			spec.Sizes[d] = pattern.Sizes{Smallest: log.Align, Largest: max(log.Align, log.SizeMax)}
		}
	}
	if spec.Writes {
		spec.Content = content.Of(j, max(log.Align, contentBlockMin))
	}
	for d, active := range spec.Active() {
		p.OpenLoop[d] = p.OpenLoop[d] || active && !j.Replay.NoStall
	}
	c := Clone{Key: load.Key(key, 0)}
	for i := range log.Files {
		if i >= len(p.Workload.Devices) {
			p.Issues.Errorf(j.Pos, "iolog-file", "job %q: the log's file %q has no device", j.Name, log.Files[i].Name)
			return
		}
		c.Streams = append(c.Streams, streamSpec{
			Device: i, Region: pattern.Region{Length: log.Files[i].End}, Amount: log.Bytes[iolog.Write], key: load.Key(c.Key, uint64(i)),
		})
	}
	spec.Clones = []Clone{c}
}

// contentBlockMin is the smallest unit in which repeated content is dealt out where the log's own is odd.
const contentBlockMin = 512

// WritesTo reports whether a job changes a device.
func (s *Job) WritesTo(device int) bool {
	if s.Replay != nil {
		return s.Replay.Files[device].Writes()
	}
	return s.changes()
}
