package fiojob

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
)

// Extent is the byte range of one file that one clone of a job may touch.
type Extent struct {
	Job    string
	Clone  int // 0 … NumJobs-1
	File   string
	Offset int64
	Length int64 // 0 where the size of the file is not known
	Writes bool
}

// Files returns the names that the job opens: filename, with directory in front. It is empty for a job that names
// none, whose files fio would create.
func (j *Job) Files() []string {
	files := make([]string, len(j.Filenames))
	folders := j.Directories()
	for i, f := range j.Filenames {
		if len(folders) > 0 {
			f = path.Join(folders[0], f)
		}
		files[i] = f
	}
	return files
}

// Extents returns what each clone of the job may touch, file by file. deviceSize returns the size of a file in bytes; it
// is asked for every file, and false makes an error only where a percentage or a missing size needs the answer. A
// range that passes the end of a known file is cut there, as fio does with devices. Strided zones are listed one by one
// unless they are very many.
func (j *Job) Extents(deviceSize func(name string) (int64, bool)) ([]Extent, error) {
	files := j.Files()
	if len(files) == 0 {
		return nil, fmt.Errorf("job %q: names no file", j.Name)
	}
	smallest, _ := j.BlockBounds()
	var out []Extent
	for clone := range j.NumJobs {
		for _, file := range files {
			total, known := deviceSize(file)
			if !known {
				total = -1
			}
			e, err := j.extent(clone, total, smallest)
			if err != nil {
				return nil, fmt.Errorf("job %q on %q: %w", j.Name, file, err)
			}
			e.File = file
			out = j.appendZones(out, e)
		}
	}
	return out, nil
}

// zonesShownMax bounds how many windows of a region are listed one by one.
const zonesShownMax = 1024

// zoneWindow is the length of a strided zone: zonerange, else zonesize. A job may move more in it than that, over and over, or
// less.
func (j *Job) zoneWindow() int64 {
	if j.ZoneRange > 0 {
		return j.ZoneRange
	}
	return j.ZoneSize
}

// appendZones appends e, cut into its windows where the job has strided zones: zonerange bytes (default zonesize), the
// next one zoneskip behind their end.
func (j *Job) appendZones(out []Extent, e Extent) []Extent {
	window, stride := j.zoneWindow(), j.stride()
	if stride <= 0 || e.Length/stride >= zonesShownMax {
		return append(out, e)
	}
	end := e.Offset + e.Length
	for at := e.Offset; at < end && at >= e.Offset; at += stride {
		zone := e
		zone.Offset, zone.Length = at, min(window, end-at)
		out = append(out, zone)
	}
	return out
}

// alignOffsets returns what offsets in percent are rounded up to; block is the smallest block.
func (j *Job) alignOffsets(block int64) int64 {
	if j.OffsetAlign > 0 {
		return j.OffsetAlign
	}
	return block
}

// extent finds the range of one clone in a file, which has total bytes or -1.
func (j *Job) extent(clone int, total, block int64) (Extent, error) {
	offset, err := resolve(j.Offset, total)
	if err != nil {
		return Extent{}, err
	}
	increment, err := resolve(j.OffsetIncrement, total)
	if err != nil {
		return Extent{}, err
	}
	if j.Offset.Percent > 0 || j.OffsetIncrement.Percent > 0 {
		// fio rounds percentages of the offset up to offset_align or the smallest block.
		align := j.alignOffsets(block)
		offset, increment = roundUp(offset, align), roundUp(increment, align)
	}
	if increment > 0 && int64(clone) > (math.MaxInt64-offset)/increment {
		return Extent{}, fmt.Errorf("offset_increment %d is too large", increment)
	}
	offset += int64(clone) * increment
	if total >= 0 && offset >= total {
		return Extent{}, fmt.Errorf("offset %d is at or behind the end at %d", offset, total)
	}
	length, err := j.regionBytes(total, offset, block)
	if err != nil {
		return Extent{}, err
	}
	if total >= 0 {
		length = min(length, total-offset)
	}
	if length > math.MaxInt64-offset {
		return Extent{}, fmt.Errorf("%d bytes from offset %d are too many", length, offset)
	}
	if length < block {
		return Extent{}, fmt.Errorf("size %d is smaller than one block of %d", length, block)
	}
	return Extent{Job: j.Name, Clone: clone, Offset: offset, Length: length, Writes: j.Writes()}, nil
}

// regionBytes returns the length of the region in one file: up to filesize, else the file's share of size, else what
// is there.
func (j *Job) regionBytes(total, offset, block int64) (int64, error) {
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
		return max(n/block*block, j.percentFloor), err
	case j.Size.Bytes > 0 && files == 1:
		return j.Size.Bytes, nil
	case j.Size.Bytes > 0:
		return j.Size.Bytes / files / block * block, nil
	case total < 0:
		return 0, fmt.Errorf("no size is given and that of the file is not known")
	}
	return total - offset, nil
}

// Amount returns the bytes that one clone transfers in one loop when nothing but size ends it, and false when its
// size follows from the file.
func (j *Job) Amount() (int64, bool) {
	amount := int64(0)
	switch {
	case j.IOSize.Bytes > 0:
		return j.IOSize.Bytes, true
	case j.IOSize.Percent > 0 || j.Size.Percent > 0:
		return 0, false
	case j.Size.Bytes > 0:
		amount = j.Size.Bytes
	}
	if j.FileSize.Bytes > 0 && j.Offset.Percent == 0 {
		region := (j.FileSize.Bytes - j.Offset.Bytes) * int64(max(1, len(j.Filenames)))
		if amount == 0 || region < amount {
			amount = max(0, region)
		}
	}
	return amount, amount > 0
}

// Touched returns the extents of all jobs merged: per file, sorted by offset, ranges that overlap or touch joined where
// both write or both only read. Job and Clone are empty.
func (f *File) Touched(deviceSize func(name string) (int64, bool)) ([]Extent, error) {
	var all []Extent
	for i := range f.jobs {
		extents, err := f.jobs[i].Extents(deviceSize)
		if err != nil {
			return nil, err
		}
		for _, e := range extents {
			all = append(all, Extent{File: e.File, Offset: e.Offset, Length: e.Length, Writes: e.Writes})
		}
	}
	slices.SortFunc(all, func(a, b Extent) int {
		return cmp.Or(cmp.Compare(a.File, b.File), compareBool(a.Writes, b.Writes), cmp.Compare(a.Offset, b.Offset))
	})
	var out []Extent
	for _, e := range all {
		if n := len(out) - 1; n >= 0 && out[n].File == e.File && out[n].Writes == e.Writes &&
			e.Offset <= out[n].Offset+out[n].Length {
			out[n].Length = max(out[n].Length, e.Offset+e.Length-out[n].Offset)
			continue
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b Extent) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset))
	})
	return out, nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// BytesWritten bounds what all clones of the job write: exact for a size-bound job that only writes, an upper bound for
// a mix, 0 for one that reads, -1 where only time ends it. A job with sizes to be found in its files counts as -1 too.
func (j *Job) BytesWritten() int64 {
	if !j.Writes() || j.ReadWrite == "trim" || j.ReadWrite == "randtrim" {
		return 0
	}
	amount, known := j.Amount()
	if j.TimeBased && j.Runtime > 0 || !known {
		return -1
	}
	if j.NumberIOs > 0 {
		_, largest := j.BlockBounds()
		if j.NumberIOs < amount/largest {
			amount = j.NumberIOs * largest
		}
	}
	times := int64(j.NumJobs) * int64(max(1, j.Loops))
	if amount > math.MaxInt64/times {
		return -1
	}
	return amount * times
}

// WriteRate returns how many bytes a second the job's rates let all its clones write, 0 where no rate bounds that. Rates in
// operations count with the largest block.
func (j *Job) WriteRate() int64 {
	const write = 1
	_, largest := j.BlockBounds()
	perClone := float64(j.Rate[write])
	if perClone == 0 {
		perClone = j.RateIOPS[write] * float64(largest)
	}
	return int64(math.Ceil(min(perClone*float64(j.NumJobs), math.MaxInt64/2)))
}

// WriteRate adds up the write rates of jobs, 0 where one of them writes without a rate.
func WriteRate(jobs []Job) int64 {
	var sum int64
	for i := range jobs {
		if jobs[i].BytesWritten() == 0 {
			continue
		}
		rate := jobs[i].WriteRate()
		if rate == 0 || sum > math.MaxInt64-rate {
			return 0
		}
		sum += rate
	}
	return sum
}

func resolve(s Size, total int64) (int64, error) {
	if s.Percent == 0 {
		return s.Bytes, nil
	}
	if total < 0 {
		return 0, fmt.Errorf("a percentage needs the size of the file, which is not known")
	}
	return int64(float64(total) * s.Percent / 100), nil
}

func roundUp(n, block int64) int64 { return (n + block - 1) / block * block }
