package program

import (
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
)

// A trim gives a range back to the medium: a discard on a block device, a hole in a regular file. fio 3.33 knows only
// the first and fails on files. trimwrite writes each block once its trim is complete; both count as operations, and
// size, number_ios and rates are those of the pairs.

// Draws tells for which directions operations are drawn. Writes of trimwrite follow from its trims.
func (s *Job) Draws() (d [interval.DirectionCount]bool) {
	d = s.Active()
	if s.Pairs() {
		d[interval.Write] = false
	}
	return d
}

// Active tells which directions a job has.
func (s *Job) Active() [interval.DirectionCount]bool {
	return [interval.DirectionCount]bool{interval.Read: s.Reads, interval.Write: s.Writes, interval.Trim: s.Trims}
}

// Pairs reports whether each block is trimmed and then written.
func (s *Job) Pairs() bool { return s.Trims && s.Writes && s.Replay == nil }

// SizeMean is the mean size of what is drawn; of reads where there are both reads and writes.
func (s *Job) SizeMean() float64 {
	for d, active := range s.Draws() {
		if active {
			return s.Sizes[d].Mean()
		}
	}
	return 1
}

// compileTrims works out the sizes of trims, which are also those of the writes behind them.
func (p *Program) compileTrims(j *fiojob.Job, spec *Job) {
	trims := pattern.SizesOf(j, fiojob.Trim)
	spec.Sizes[interval.Trim] = trims
	if !spec.Pairs() {
		return
	}
	if !trims.Equal(&spec.Sizes[interval.Write]) {
		p.Issues.Add(diag.Diagnostic{
			Severity: diag.SeverityWarning, Code: "trimwrite-sizes", Pos: p.optionPos(j, "bs"), Width: len("bs"),
			Message: "job \"" + j.Name + "\": " + j.ReadWrite + " writes the blocks that it trimmed; the sizes of writes have no effect",
		})
	}
	spec.Sizes[interval.Write] = trims
}

// pairRate is the rate of trimwrite: that of its trims, or of its writes where that is lower.
func pairRate(trims float64, j *fiojob.Job, inBytes bool) float64 {
	writes, writesInBytes := rateOf(j, int(interval.Write))
	if trims > 0 && writesInBytes == inBytes && writes > 0 {
		return min(trims, writes)
	}
	return trims
}
