package region

import (
	"math"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// Walked returns the extents that fio touches, like Touched, but with fio's own handling of strided zones: it continues
// from zone to zone up to the end of the file, regardless of size and filesize, until the job has transferred its bytes. No
// option of fio stops it earlier (setup_strided_zone_mode in its io_u.c compares only with the file's real size).
// deviceSize is the size that offsets and sizes refer to, realSize the size of the file when fio opens it.
func Walked(f *fiojob.File, deviceSize, realSize func(name string) (int64, bool)) ([]extent.Extent, error) {
	return Touched(f.Each(func(j fiojob.Job) fiojob.Job { return walked(j, realSize) }), deviceSize)
}

// walked returns the job with the region that fio walks over as its filesize. It is only valid for extents.
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
		zones, stride := (moved-1)/j.ZoneSize, window+j.ZoneSkip.Bytes // full zones, and the started one after them
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

// movedByClone bounds the bytes that one clone transfers in all its loops, and returns false if only time ends it. fio
// continues with the next zone in the next loop.
func movedByClone(j *fiojob.Job) (int64, bool) {
	amount, known := Amount(j)
	loops := int64(max(1, j.Loops))
	if !known || j.TimeBased && j.Runtime > 0 || amount > math.MaxInt64/loops {
		return 0, false
	}
	return amount * loops, true
}

// zoneOverrun is how far an operation that begins in a zone may extend beyond it: 0 if blocks of one size fill the zone.
func zoneOverrun(j *fiojob.Job, window int64) int64 {
	smallest, largest := j.BlockBounds()
	if smallest == largest && window%largest == 0 {
		return 0
	}
	return largest
}
