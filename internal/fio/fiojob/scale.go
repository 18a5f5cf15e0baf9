package fiojob

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// Resolve returns the job with every percentage and missing size replaced by bytes, and sizes cut at the end of the
// files, where deviceSize knows the files and all of them have one size. Offsets round up and sizes down to the
// smallest block, as fio does.
func (j Job) Resolve(deviceSize func(name string) (int64, bool)) Job {
	j = j.clone()
	total := int64(-1)
	for _, f := range j.Files() {
		n, known := deviceSize(f)
		if !known || total >= 0 && n != total {
			return j
		}
		total = n
	}
	if total < 0 {
		return j
	}
	block, _ := j.BlockBounds()
	align := j.alignOffsets(block)
	up := func(s *Size, key string) {
		if s.Percent > 0 {
			n, _ := resolve(*s, total)
			j.setSize(s, key, roundUp(n, align))
		}
	}
	down := func(s *Size, key string, files, bound int64) {
		n, _ := resolve(*s, total)
		if s.Percent > 0 {
			n = max(n/block*block, j.percentFloor) * files
		}
		if n = min(n, bound); s.Percent > 0 || n < s.Bytes {
			j.setSize(s, key, n)
		}
	}
	up(&j.Offset, "offset")
	up(&j.OffsetIncrement, "offset_increment")
	files := int64(max(1, len(j.Filenames)))
	rest := max(0, total-j.Offset.Bytes)
	down(&j.FileSize, "filesize", 1, total)
	if j.FileSize.Bytes > 0 {
		down(&j.Size, "size", files, math.MaxInt64)
	} else {
		down(&j.Size, "size", files, rest*files)
	}
	down(&j.IOSize, "io_size", files, math.MaxInt64)
	if j.Size.Bytes == 0 && j.FileSize.Bytes == 0 && rest > 0 && (j.OffsetIncrement.Bytes == 0 || j.NumJobs == 1) {
		j.setSize(&j.Size, "size", rest*files)
	}
	return j
}

// Scale returns the job with every byte extent multiplied by factor: size, filesize, offset, offset_increment, io_size,
// zonesize, zonerange, zoneskip and ramp_size. Each is rounded to a multiple of the job's largest block; size, filesize, offset
// and io_size keep at least blocksMin of them and zones one, but none grows. A region that holds a whole number of
// strided zones keeps that number. Rates and block sizes stay. A missing size becomes a percentage of the file. A
// factor outside (0, 1) changes nothing.
func (j Job) Scale(factor float64, blocksMin int) Job {
	if factor <= 0 || factor >= 1 || math.IsNaN(factor) {
		return j
	}
	j = j.clone()
	_, block := j.BlockBounds()
	shrink := func(n int64, blocks int64) int64 {
		if n <= 0 {
			return n
		}
		scaled := int64(math.Round(float64(n)*factor/float64(block))) * block
		return min(n, max(scaled, blocks*block))
	}
	floor := int64(max(1, blocksMin))
	files := int64(max(1, len(j.Filenames)))
	scaleSize := func(s *Size, key string, blocks int64) {
		switch {
		case s.Percent > 0:
			s.Percent *= factor
			j.set(key, formatSize(*s))
		case s.Bytes > 0:
			j.setSize(s, key, shrink(s.Bytes, blocks))
		}
	}
	scaleBytes := func(n *int64, key string) {
		if *n > 0 {
			*n = shrink(*n, 1)
			j.set(key, exactBytes(*n))
		}
	}
	if !j.Size.Set && !j.FileSize.Set {
		j.Size = Size{Percent: 100, Set: true}
	}
	j.percentFloor = floor * block
	whole := j.clone() // zones count in what was
	scaleSize(&j.Size, "size", floor*files)
	// filesize is an end and not a length: what is scaled is the region in front of it.
	start := func() int64 { return j.Offset.Bytes + int64(j.NumJobs-1)*j.OffsetIncrement.Bytes }
	region := j.FileSize.Bytes - start()
	scaleSize(&j.Offset, "offset", floor)
	scaleSize(&j.OffsetIncrement, "offset_increment", floor)
	if j.FileSize.Bytes > 0 && region > 0 {
		j.setSize(&j.FileSize, "filesize", start()+shrink(region, floor))
	} else {
		scaleSize(&j.FileSize, "filesize", floor)
	}
	scaleSize(&j.IOSize, "io_size", floor)
	scaleSize(&j.ZoneSkip, "zoneskip", 1)
	scaleBytes(&j.ZoneSize, "zonesize")
	scaleBytes(&j.ZoneRange, "zonerange")
	scaleBytes(&j.RampSize, "ramp_size")
	if windows := whole.windows(region); windows > 0 {
		wanted := (floor*block + j.stride() - 1) / j.stride()
		j.fitZones(max(windows, min(wanted, windows*whole.stride()/j.stride())), start())
	}
	return j
}

// fitZones makes the region a whole number of scaled zones, as it was before: rounding must not leave a piece of one at
// the end, where fio would stop.
func (j *Job) fitZones(windows, start int64) {
	if j.FileSize.Bytes > 0 {
		j.setSize(&j.FileSize, "filesize", start+windows*j.stride())
		return
	}
	j.setSize(&j.Size, "size", windows*j.stride()*int64(max(1, len(j.Filenames))))
}

// stride is the distance between strided zones, 0 without them.
func (j *Job) stride() int64 {
	if j.ZoneMode != "strided" || j.ZoneSize <= 0 || j.ZoneSkip.Percent > 0 {
		return 0
	}
	return j.zoneWindow() + j.ZoneSkip.Bytes
}

// windows returns how many strided zones the region of a file has, 0 without zones or when it is no whole number.
func (j *Job) windows(region int64) int64 {
	if j.FileSize.Bytes == 0 {
		region = 0
		if j.Size.Percent == 0 {
			region = j.Size.Bytes / int64(max(1, len(j.Filenames)))
		}
	}
	if stride := j.stride(); stride > 0 && region > 0 && region%stride == 0 {
		return region / stride
	}
	return 0
}

func (j *Job) setSize(s *Size, key string, n int64) {
	*s = Size{Bytes: n, Set: true}
	j.set(key, exactBytes(n))
}

// set replaces the text of an option after its typed value changed.
func (j *Job) set(key, exact string) {
	class, why := ClassOf(key)
	for i := range j.Options {
		if j.Options[i].Key == key {
			o := j.Options[i]
			o.Value, o.Exact, o.Bare = exact, exact, false
			j.Options[i] = o
			return
		}
	}
	j.Options = append(j.Options, Option{Key: key, Value: exact, Exact: exact, Class: class, Why: why, Pos: j.Pos})
}

// each returns a File whose jobs are what change makes of them.
func (f *File) each(change func(Job) Job) *File {
	out := *f
	out.jobs = make([]Job, len(f.jobs))
	for i, j := range f.jobs {
		out.jobs[i] = change(j)
	}
	return &out
}

// Scale returns the file with every job scaled.
func (f *File) Scale(factor float64, blocksMin int) *File {
	return f.each(func(j Job) Job { return j.Scale(factor, blocksMin) })
}

// Resolve returns the file with every job resolved.
func (f *File) Resolve(deviceSize func(name string) (int64, bool)) *File {
	return f.each(func(j Job) Job { return j.Resolve(deviceSize) })
}

// FitFiles returns the file with every filesize cut at the real end of the files, where all of them have one. fio makes
// a file that is shorter than filesize anew.
func (f *File) FitFiles(realSize func(name string) (int64, bool)) *File {
	return f.each(func(j Job) Job {
		for _, name := range j.Files() {
			if n, known := realSize(name); known && j.FileSize.Bytes > n {
				j = j.clone()
				j.setSize(&j.FileSize, "filesize", n)
			}
		}
		return j
	})
}

// WithRuntime returns the file with every job bounded to d; 0 changes nothing.
func (f *File) WithRuntime(d time.Duration) *File {
	return f.each(func(j Job) Job { return j.WithRuntime(d) })
}

// WithDepth returns the file with every job at this queue depth.
func (f *File) WithDepth(depth int) *File {
	return f.each(func(j Job) Job {
		j = j.clone()
		j.IODepth, j.IODepthLow = depth, depth
		j.set("iodepth", strconv.Itoa(depth))
		return j
	})
}

// ContinueOnErrors returns the file with continue_on_error=all for jobs that say nothing about it, as X-Ray sets it:
// a workload outlives the failures that a scenario causes, and the errors are counted.
func (f *File) ContinueOnErrors() *File {
	return f.each(func(j Job) Job {
		if j.Has("continue_on_error") {
			return j
		}
		j = j.clone()
		j.ContinueOnError = "all"
		j.set("continue_on_error", "all")
		return j
	})
}

const (
	prefillBlockBytes    = 1 << 20
	prefillBlockBytesMin = 4096
	prefillDepth         = 4 // of X-Ray, for one VM per node
)

// Prefill returns a file that writes what the jobs use before they run: every job's files, offset and size, in order,
// in blocks of 1 MiB, directly, four at a time, all jobs at once. Clones with an offset_increment write theirs. Where
// 1 MiB does not divide a scaled extent, a smaller power of two does.
func (f *File) Prefill() *File {
	out := &File{Name: f.Name}
	for _, j := range f.jobs {
		p := defaultJob()
		p.Name, p.Section, p.Pos, p.source = j.Name, j.Section, j.Pos, j.source
		p.Filenames, p.Directory, p.NrFiles = slices.Clone(j.Filenames), j.Directory, j.NrFiles
		p.OpenFiles = p.NrFiles
		p.Size, p.Offset = j.Size, j.Offset
		if !j.Size.Set && j.FileSize.Set {
			p.Size = j.FileSize
		}
		if j.NumJobs > 1 && j.OffsetIncrement.Set {
			p.NumJobs, p.OffsetIncrement = j.NumJobs, j.OffsetIncrement
			p.set("numjobs", strconv.Itoa(p.NumJobs))
			p.set("offset_increment", formatSize(p.OffsetIncrement))
		}
		block := int64(prefillBlockBytes)
		for block > prefillBlockBytesMin &&
			(p.Size.Bytes/int64(max(1, len(p.Filenames)))%block != 0 || p.Offset.Bytes%block != 0 || p.OffsetIncrement.Bytes%block != 0) {
			block /= 2
		}
		p.ReadWrite, p.IOEngine, p.IODepth, p.IODepthLow, p.Direct = "write", "libaio", prefillDepth, prefillDepth, true
		p.IODepthBatchCompleteMax = 1
		p.BlockSize = [3]int64{block, block, block}
		p.ContinueOnError = "none"
		for _, o := range [][2]string{
			{"rw", "write"}, {"bs", exactBytes(block)}, {"ioengine", "libaio"},
			{"iodepth", strconv.Itoa(prefillDepth)}, {"direct", "1"},
		} {
			p.set(o[0], o[1])
		}
		if len(p.Filenames) > 0 {
			p.set("filename", joinFilenames(p.Filenames, nil))
		}
		if p.Size.Set {
			p.set("size", formatSize(p.Size))
		}
		if p.Offset.Set {
			p.set("offset", formatSize(p.Offset))
		}
		out.jobs = append(out.jobs, p)
	}
	return out
}
