package region

import (
	"math"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// Walked returns what real fio touches, as Touched does, but with its own way through strided zones: from zone to zone
// up to the end of the file, whatever size and filesize say, until the job has moved its bytes. No option of fio stops it
// earlier (setup_strided_zone_mode in its io_u.c compares with the file's real size alone). deviceSize is what offsets and
// sizes count with, realSize how large the file is when fio opens it.
func Walked(f *fiojob.File, deviceSize, realSize func(name string) (int64, bool)) ([]extent.Extent, error) {
	return Touched(f.Each(func(j fiojob.Job) fiojob.Job { return walked(j, realSize) }), deviceSize)
}

// walked returns the job with the region that fio walks over as its filesize. It is good for extents only.
func walked(j fiojob.Job, realSize func(name string) (int64, bool)) fiojob.Job {
	if j.ZoneMode != "strided" || j.ZoneSize <= 0 {
		return j
	}
	end := int64(0)
	for _, name := range j.Files() {
		n, known := realSize(name)
		if !known {
			return j
		}
		end = max(end, n)
	}
	window := zoneWindow(&j)
	moved, bounded := movedByClone(&j)
	j = j.Clone()
	if bounded && j.ZoneSkip.Percent == 0 && j.Offset.Percent == 0 && j.OffsetIncrement.Percent == 0 {
		start := j.Offset.Bytes + int64(j.NumJobs-1)*j.OffsetIncrement.Bytes
		zones, stride := (moved-1)/j.ZoneSize, window+j.ZoneSkip.Bytes // full zones, and the one begun behind them
		if zones <= (end-start)/stride {
			end = min(end, start+zones*stride+window+zoneOverrun(&j, window))
		}
	}
	over := zoneOverrun(&j, window)
	j.ZoneSize, j.ZoneRange = window+over, 0
	j.ZoneSkip.Bytes = max(0, j.ZoneSkip.Bytes-over)
	j.FileSize = fiojob.Size{Bytes: end, Set: true}
	return j
}

// movedByClone bounds the bytes that one clone moves in all its loops, and is false where only time ends it. fio goes on
// with the next zone in the next loop.
func movedByClone(j *fiojob.Job) (int64, bool) {
	amount, known := Amount(j)
	loops := int64(max(1, j.Loops))
	if !known || j.TimeBased && j.Runtime > 0 || amount > math.MaxInt64/loops {
		return 0, false
	}
	return amount * loops, true
}

// zoneOverrun is how far an operation that begins in a zone may reach behind it: nothing where blocks of one size fill
// the zone.
func zoneOverrun(j *fiojob.Job, window int64) int64 {
	smallest, largest := j.BlockBounds()
	if smallest == largest && window%largest == 0 {
		return 0
	}
	return largest
}
