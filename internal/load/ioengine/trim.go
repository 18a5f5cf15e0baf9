package ioengine

import (
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
)

// A trim gives a range back to the medium: a discard on a block device, a hole in a regular file. fio 3.33 knows only
// the first and fails on files. trimwrite writes each block once its trim is complete; both count as operations, and
// size, number_ios and rates are those of the pairs.

// draws tells for which directions operations are drawn. Writes of trimwrite follow from its trims.
func (s *jobSpec) draws() (d [interval.DirectionCount]bool) {
	d = s.active()
	if s.pairs() {
		d[interval.Write] = false
	}
	return d
}

// active tells which directions a job has.
func (s *jobSpec) active() [interval.DirectionCount]bool {
	return [interval.DirectionCount]bool{interval.Read: s.reads, interval.Write: s.writes, interval.Trim: s.trims}
}

// pairs tells whether each block is trimmed and then written.
func (s *jobSpec) pairs() bool { return s.trims && s.writes && s.replay == nil }

// sizeMean is the mean size of what is drawn; of reads where there are both reads and writes.
func (s *jobSpec) sizeMean() float64 {
	for d, active := range s.draws() {
		if active {
			return s.sizes[d].Mean()
		}
	}
	return 1
}

// compileTrims works out the sizes of trims, which are also those of the writes behind them.
func (p *program) compileTrims(j *fiojob.Job, spec *jobSpec) {
	trims := pattern.SizesOf(j, fiojob.Trim)
	spec.sizes[interval.Trim] = trims
	if !spec.pairs() {
		return
	}
	if !trims.Equal(&spec.sizes[interval.Write]) {
		p.issues.Add(diag.Diagnostic{
			Severity: diag.SeverityWarning, Code: "trimwrite-sizes", Pos: p.optionPos(j, "bs"), Width: len("bs"),
			Message: "job \"" + j.Name + "\": " + j.ReadWrite + " writes the blocks that it trimmed; the sizes of writes have no effect",
		})
	}
	spec.sizes[interval.Write] = trims
}

// pairRate is the rate of trimwrite: that of its trims, or of its writes where that is lower.
func pairRate(trims float64, j *fiojob.Job, inBytes bool) float64 {
	writes, writesInBytes := rateOf(j, int(interval.Write))
	if trims > 0 && writesInBytes == inBytes && writes > 0 {
		return min(trims, writes)
	}
	return trims
}

// done notes what follows from a successful operation.
func (l *lane) done(s *backend.Slot) {
	if s.Kind == backend.OpTrim && l.job.pairs() && l.closed != closedTime {
		l.trimmed = append(l.trimmed, operation{
			stream: s.Stream, direction: uint8(interval.Write), offset: s.Offset, size: s.Size, intended: backend.Never,
		})
	}
}

// issueTrimmed writes the block that was trimmed last.
func (l *lane) issueTrimmed(w *worker) {
	top := len(l.trimmed) - 1
	o := l.trimmed[top]
	l.trimmed = l.trimmed[:top]
	l.put(w, &o)
}
