package region

import (
	"math"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// ResolveJob returns the job with every percentage and missing size replaced by bytes, and sizes truncated at the end of
// the files, if deviceSize knows the files and all of them have one size. Offsets round up and sizes down to the smallest
// block, as in fio.
func ResolveJob(j fiojob.Job, deviceSize func(name string) (int64, bool)) fiojob.Job {
	j = j.Clone()
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
	align := alignOffsets(&j, block)
	up := func(s *fiojob.Size, key string) {
		if s.Percent > 0 {
			n, _ := resolve(*s, total)
			setSize(&j, s, key, roundUp(n, align))
		}
	}
	down := func(s *fiojob.Size, key string, files, bound int64) {
		n, _ := resolve(*s, total)
		if s.Percent > 0 {
			n = max(n/block*block, j.PercentFloor) * files
		}
		if n = min(n, bound); s.Percent > 0 || n < s.Bytes {
			setSize(&j, s, key, n)
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
		setSize(&j, &j.Size, "size", rest*files)
	}
	return j
}

// scaleJob returns the job with every byte extent multiplied by factor: size, filesize, offset, offset_increment, io_size,
// zonesize, zonerange, zoneskip and ramp_size. Each is rounded to a multiple of the job's largest block; size, filesize, offset
// and io_size keep at least blocksMin of them and zones one, but none grows. A region that holds a whole number of
// strided zones keeps that number. Rates and block sizes stay. A missing size becomes a percentage of the file. A
// factor outside (0, 1) changes nothing.
func scaleJob(j fiojob.Job, factor float64, blocksMin int) fiojob.Job {
	if factor <= 0 || factor >= 1 || math.IsNaN(factor) {
		return j
	}
	j = j.Clone()
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
	scaleSize := func(s *fiojob.Size, key string, blocks int64) {
		switch {
		case s.Percent > 0:
			s.Percent *= factor
			j.Set(key, fiojob.FormatSize(*s))
		case s.Bytes > 0:
			setSize(&j, s, key, shrink(s.Bytes, blocks))
		}
	}
	scaleBytes := func(n *int64, key string) {
		if *n > 0 {
			*n = shrink(*n, 1)
			j.Set(key, syntax.FormatBytes(*n))
		}
	}
	if !j.Size.Set && !j.FileSize.Set {
		j.Size = fiojob.Size{Percent: 100, Set: true}
	}
	j.PercentFloor = floor * block
	whole := j.Clone() // zones count in the unscaled job
	scaleSize(&j.Size, "size", floor*files)
	// filesize is an end and not a length: the region before it is scaled.
	start := func() int64 { return j.Offset.Bytes + int64(j.NumJobs-1)*j.OffsetIncrement.Bytes }
	region := j.FileSize.Bytes - start()
	scaleSize(&j.Offset, "offset", floor)
	scaleSize(&j.OffsetIncrement, "offset_increment", floor)
	if j.FileSize.Bytes > 0 && region > 0 {
		setSize(&j, &j.FileSize, "filesize", start()+shrink(region, floor))
	} else {
		scaleSize(&j.FileSize, "filesize", floor)
	}
	scaleSize(&j.IOSize, "io_size", floor)
	scaleSize(&j.ZoneSkip, "zoneskip", 1)
	scaleBytes(&j.ZoneSize, "zonesize")
	scaleBytes(&j.ZoneRange, "zonerange")
	scaleBytes(&j.RampSize, "ramp_size")
	if n := windows(&whole, region); n > 0 {
		wanted := (floor*block + stride(&j) - 1) / stride(&j)
		fitZones(&j, max(n, min(wanted, n*stride(&whole)/stride(&j))), start())
	}
	return j
}

// fitZones makes the region a whole number of scaled zones, as it was before: rounding must not leave a partial zone at the
// end, where fio would stop.
func fitZones(j *fiojob.Job, windows, start int64) {
	if j.FileSize.Bytes > 0 {
		setSize(j, &j.FileSize, "filesize", start+windows*stride(j))
		return
	}
	setSize(j, &j.Size, "size", windows*stride(j)*int64(max(1, len(j.Filenames))))
}

// stride is the distance between strided zones, 0 without them.
func stride(j *fiojob.Job) int64 {
	if j.ZoneMode != "strided" || j.ZoneSize <= 0 || j.ZoneSkip.Percent > 0 {
		return 0
	}
	return zoneWindow(j) + j.ZoneSkip.Bytes
}

// windows returns how many strided zones the region of a file has, 0 without zones or if it is not an integer.
func windows(j *fiojob.Job, region int64) int64 {
	if j.FileSize.Bytes == 0 {
		region = 0
		if j.Size.Percent == 0 {
			region = j.Size.Bytes / int64(max(1, len(j.Filenames)))
		}
	}
	if stride := stride(j); stride > 0 && region > 0 && region%stride == 0 {
		return region / stride
	}
	return 0
}

func setSize(j *fiojob.Job, s *fiojob.Size, key string, n int64) {
	*s = fiojob.Size{Bytes: n, Set: true}
	j.Set(key, syntax.FormatBytes(n))
}

// Scale returns the file with every job scaled.
func Scale(f *fiojob.File, factor float64, blocksMin int) *fiojob.File {
	return f.Each(func(j fiojob.Job) fiojob.Job { return scaleJob(j, factor, blocksMin) })
}

// Resolve returns the file with every job resolved.
func Resolve(f *fiojob.File, deviceSize func(name string) (int64, bool)) *fiojob.File {
	return f.Each(func(j fiojob.Job) fiojob.Job { return ResolveJob(j, deviceSize) })
}

// FitFiles returns the file with every filesize truncated at the real end of the files, if all of them have one. fio
// recreates a file that is shorter than filesize.
func FitFiles(f *fiojob.File, realSize func(name string) (int64, bool)) *fiojob.File {
	return f.Each(func(j fiojob.Job) fiojob.Job {
		for _, name := range j.Files() {
			if n, known := realSize(name); known && j.FileSize.Bytes > n {
				j = j.Clone()
				setSize(&j, &j.FileSize, "filesize", n)
			}
		}
		return j
	})
}

// rateMax bounds a scaled rate; float64 holds it exactly.
const rateMax = 1 << 52

// ScaleRates returns the file with every rate, and every rate below which a job fails, multiplied by factor. Jobs without a
// rate do not change. Rates in operations are rounded to whole operations and rates in bytes to whole bytes, at least 1.
func ScaleRates(f *fiojob.File, factor float64) *fiojob.File {
	if factor == 1 {
		return f
	}
	return f.Each(func(j fiojob.Job) fiojob.Job {
		j = j.Clone()
		scaleRate(&j, "rate", &j.Rate, factor)
		scaleRate(&j, "rate_min", &j.Control.RateMin, factor)
		scaleRate(&j, "rate_iops_min", &j.Control.RateIOPSMin, factor)
		var whole [3]int64
		for d, r := range j.RateIOPS {
			whole[d] = int64(r)
		}
		scaleRate(&j, "rate_iops", &whole, factor)
		for d, r := range whole {
			j.RateIOPS[d] = float64(r)
		}
		return j
	})
}

// scaleRate multiplies the rates of the directions that have one.
func scaleRate(j *fiojob.Job, key string, rates *[3]int64, factor float64) {
	if *rates == [3]int64{} {
		return
	}
	text := make([]string, len(rates))
	for d, r := range rates {
		if r > 0 {
			rates[d] = max(1, int64(math.Round(min(float64(r)*factor, rateMax))))
			text[d] = strconv.FormatInt(rates[d], 10)
		}
	}
	j.Set(key, strings.Join(text, ","))
}
