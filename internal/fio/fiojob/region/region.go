// Package region computes which ranges jobs touch and how much they transfer, and scales jobs down.
//
// It uses only the values of a fiojob.Job: it opens no files and drives no load.
//
//	Job, sizes of files ──Of──▶ byte ranges of each clone; Touched, Walked: of a whole File
//	Job ──Amount, BytesWritten, WriteRate, Takes──▶ bytes, bytes a second, time
//	File ──Resolve, Scale, ScaleRates, Prefill──▶ File without percentages, smaller, slower, or that writes what the jobs use
package region

import (
	"cmp"
	"fmt"
	"math"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// Of returns what each clone of the job may touch, file by file. deviceSize returns the size of a file in bytes; it is
// called for every file, and false is an error only if a percentage or a missing size needs the size. A range beyond the
// end of a known file is truncated, as fio does with devices. Strided zones are listed one by one unless there are very
// many.
func Of(j *fiojob.Job, deviceSize func(name string) (int64, bool)) ([]extent.Extent, error) {
	files := j.Files()
	if len(files) == 0 {
		return nil, fmt.Errorf("job %q: names no file", j.Name)
	}
	smallest, _ := j.BlockBounds()
	var out []extent.Extent
	for clone := range j.NumJobs {
		for _, file := range files {
			total, known := deviceSize(file)
			if !known {
				total = -1
			}
			e, err := ofClone(j, clone, total, smallest)
			if err != nil {
				return nil, fmt.Errorf("job %q on %q: %w", j.Name, file, err)
			}
			e.Device = file
			out = appendZones(j, out, e)
		}
	}
	return out, nil
}

// zonesShownMax bounds how many windows of a region are listed individually.
const zonesShownMax = 1024

// zoneWindow is the length of a strided zone: zonerange, else zonesize. A job may transfer more than that in it,
// repeatedly, or less.
func zoneWindow(j *fiojob.Job) int64 { return cmp.Or(j.ZoneRange, j.ZoneSize) }

// alignOffsets returns what offsets in percent are rounded up to; block is the smallest block.
func alignOffsets(j *fiojob.Job, block int64) int64 { return cmp.Or(j.OffsetAlign, block) }

// appendZones appends e, split into its windows if the job has strided zones: zonerange bytes (default zonesize), the next
// one zoneskip after its end.
func appendZones(j *fiojob.Job, out []extent.Extent, e extent.Extent) []extent.Extent {
	window, stride := zoneWindow(j), stride(j)
	if stride <= 0 || e.Length/stride >= zonesShownMax {
		return append(out, e)
	}
	end := e.End()
	for at := e.Offset; at < end && at >= e.Offset; at += stride {
		zone := e
		zone.Offset, zone.Length = at, min(window, end-at)
		out = append(out, zone)
	}
	return out
}

// ofClone finds the range of one clone in a file, which has total bytes or -1.
func ofClone(j *fiojob.Job, clone int, total, block int64) (extent.Extent, error) {
	offset, err := resolve(j.Offset, total)
	if err != nil {
		return extent.Extent{}, err
	}
	increment, err := resolve(j.OffsetIncrement, total)
	if err != nil {
		return extent.Extent{}, err
	}
	if j.Offset.Percent > 0 || j.OffsetIncrement.Percent > 0 {
		// fio rounds percentages of the offset up to offset_align or the smallest block.
		align := alignOffsets(j, block)
		offset, increment = roundUp(offset, align), roundUp(increment, align)
	}
	if increment > 0 && int64(clone) > (math.MaxInt64-offset)/increment {
		return extent.Extent{}, fmt.Errorf("offset_increment %d is too large", increment)
	}
	offset += int64(clone) * increment
	if total >= 0 && offset >= total {
		return extent.Extent{}, fmt.Errorf("offset %d is at or behind the end at %d", offset, total)
	}
	length, err := regionBytes(j, total, offset, block)
	if err != nil {
		return extent.Extent{}, err
	}
	if total >= 0 {
		length = min(length, total-offset)
	}
	if length > math.MaxInt64-offset {
		return extent.Extent{}, fmt.Errorf("%d bytes from offset %d are too many", length, offset)
	}
	if length < block {
		return extent.Extent{}, fmt.Errorf("size %d is smaller than one block of %d", length, block)
	}
	return extent.Extent{Offset: offset, Length: length, Writes: j.Writes()}, nil
}

// regionBytes returns the length of the region in one file: up to filesize, else the file's share of size, else the rest of
// the file.
func regionBytes(j *fiojob.Job, total, offset, block int64) (int64, error) {
	files := int64(max(1, len(j.Filenames)))
	switch {
	case j.FileSize.Bytes > 0 || j.FileSize.Percent > 0:
		end, err := resolve(j.FileSize, total)
		if err != nil {
			return 0, err
		}
		region := end - offset
		if sequential := !j.Random() && j.ZoneMode == "none" && !j.IOSize.Set; sequential && j.Size.Bytes > 0 {
			region = min(region, j.Size.Bytes/files)
		}
		return region, nil
	case j.Size.Percent > 0:
		n, err := resolve(j.Size, total)
		return max(n/block*block, j.PercentFloor), err
	case j.Size.Bytes > 0 && files == 1:
		return j.Size.Bytes, nil
	case j.Size.Bytes > 0:
		return j.Size.Bytes / files / block * block, nil
	case total < 0:
		return 0, fmt.Errorf("no size is given and that of the file is not known")
	}
	return total - offset, nil
}

// Touched returns the extents of all jobs merged: per file, sorted by offset, ranges that overlap or touch joined if both
// write or both only read.
func Touched(f *fiojob.File, deviceSize func(name string) (int64, bool)) ([]extent.Extent, error) {
	var all []extent.Extent
	for _, j := range f.Jobs() {
		extents, err := Of(&j, deviceSize)
		if err != nil {
			return nil, err
		}
		all = append(all, extents...)
	}
	return extent.Merge(all), nil
}

func resolve(s fiojob.Size, total int64) (int64, error) {
	if s.Percent == 0 {
		return s.Bytes, nil
	}
	if total < 0 {
		return 0, fmt.Errorf("a percentage needs the size of the file, which is not known")
	}
	return int64(float64(total) * s.Percent / 100), nil
}

func roundUp(n, block int64) int64 { return (n + block - 1) / block * block }
