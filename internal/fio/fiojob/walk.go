package fiojob

import "math"

// Walked returns what real fio touches, as Touched does, but with its own way through strided zones: from zone to zone
// up to the end of the file, whatever size and filesize say, until the job has moved its bytes. No option of fio stops it
// earlier (setup_strided_zone_mode in its io_u.c compares with the file's real size alone). deviceSize is what offsets and
// sizes count with, realSize how large the file is when fio opens it.
func (f *File) Walked(deviceSize, realSize func(name string) (int64, bool)) ([]Extent, error) {
	return f.each(func(j Job) Job { return j.walked(realSize) }).Touched(deviceSize)
}

// walked returns the job with the region that fio walks over as its filesize. It is good for extents only.
func (j Job) walked(realSize func(name string) (int64, bool)) Job {
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
	window := j.zoneWindow()
	moved, bounded := j.movedByClone()
	j = j.clone()
	if bounded && j.ZoneSkip.Percent == 0 && j.Offset.Percent == 0 && j.OffsetIncrement.Percent == 0 {
		start := j.Offset.Bytes + int64(j.NumJobs-1)*j.OffsetIncrement.Bytes
		zones, stride := (moved-1)/j.ZoneSize, window+j.ZoneSkip.Bytes // full zones, and the one begun behind them
		if zones <= (end-start)/stride {
			end = min(end, start+zones*stride+window+j.zoneOverrun(window))
		}
	}
	over := j.zoneOverrun(window)
	j.ZoneSize, j.ZoneRange = window+over, 0
	j.ZoneSkip.Bytes = max(0, j.ZoneSkip.Bytes-over)
	j.FileSize = Size{Bytes: end, Set: true}
	return j
}

// movedByClone bounds the bytes that one clone moves in all its loops, and is false where only time ends it. fio goes on
// with the next zone in the next loop.
func (j *Job) movedByClone() (int64, bool) {
	amount, known := j.Amount()
	loops := int64(max(1, j.Loops))
	if !known || j.TimeBased && j.Runtime > 0 || amount > math.MaxInt64/loops {
		return 0, false
	}
	return amount * loops, true
}

// zoneOverrun is how far an operation that begins in a zone may reach behind it: nothing where blocks of one size fill
// the zone.
func (j *Job) zoneOverrun(window int64) int64 {
	smallest, largest := j.BlockBounds()
	if smallest == largest && window%largest == 0 {
		return 0
	}
	return largest
}
