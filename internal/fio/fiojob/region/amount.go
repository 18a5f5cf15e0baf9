package region

import (
	"math"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// Amount returns the bytes that one clone transfers in one loop if only its size ends it, and false if its size follows
// from the file.
func Amount(j *fiojob.Job) (int64, bool) {
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

// BytesWritten bounds what all clones of the job write: exact for a size-bound job that only writes, an upper bound for a
// mix, 0 for one that reads, -1 if only time ends it. A job whose sizes follow from its files counts as -1 too.
func BytesWritten(j *fiojob.Job) int64 {
	if !j.Writes() || j.ReadWrite == "trim" || j.ReadWrite == "randtrim" {
		return 0
	}
	amount, known := Amount(j)
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

// writeRate returns how many bytes per second the job's rates let all its clones write, 0 if no rate bounds that. Rates in
// operations count with the largest block.
func writeRate(j *fiojob.Job) int64 {
	_, largest := j.BlockBounds()
	perClone := float64(j.Rate[fiojob.Write])
	if perClone == 0 {
		perClone = j.RateIOPS[fiojob.Write] * float64(largest)
	}
	return int64(math.Ceil(min(perClone*float64(j.NumJobs), math.MaxInt64/2)))
}

// WriteRate adds up the write rates of jobs, 0 if one of them writes without a rate.
func WriteRate(jobs []fiojob.Job) int64 {
	var sum int64
	for i := range jobs {
		if BytesWritten(&jobs[i]) == 0 {
			continue
		}
		rate := writeRate(&jobs[i])
		if rate == 0 || sum > math.MaxInt64-rate {
			return 0
		}
		sum += rate
	}
	return sum
}

// Takes bounds how long jobs take according to the file: least is the time that rates and runtimes need on the fastest
// storage, most the time that runtimes allow, 0 if a job runs until its bytes are transferred. Jobs of one group start
// together, and a stonewall waits for the jobs before it.
func Takes(jobs []fiojob.Job) (least, most time.Duration) {
	var phaseLeast, phaseMost time.Duration
	bounded := true
	for i := range jobs {
		j := &jobs[i]
		if j.Stonewall {
			least, most = least+phaseLeast, most+phaseMost
			phaseLeast, phaseMost = 0, 0
		}
		from, to := jobTakes(j)
		phaseLeast, phaseMost = max(phaseLeast, from), max(phaseMost, to)
		bounded = bounded && to > 0
	}
	least, most = least+phaseLeast, most+phaseMost
	if !bounded {
		most = 0
	}
	return least, most
}

// Ramp is how long none of the jobs counts its operations after the first of them has started, 0 if one of them has no ramp_time. Jobs behind a
// stonewall start later. When a ramp_size ends is not known before.
func Ramp(jobs []fiojob.Job) (least time.Duration) {
	for i := range jobs {
		j := &jobs[i]
		switch until := j.StartDelay + j.RampTime; {
		case i > 0 && j.Stonewall:
			return least
		case j.RampTime <= 0:
			return 0
		case i == 0 || until < least:
			least = until
		}
	}
	return least
}

// Timed reports whether any job ends by time.
func Timed(jobs []fiojob.Job) bool {
	return slices.ContainsFunc(jobs, func(j fiojob.Job) bool { return j.Runtime > 0 })
}

func jobTakes(j *fiojob.Job) (least, most time.Duration) {
	loops := time.Duration(max(1, j.Loops))
	if amount, known := amountOfOps(j); known {
		if rate := byteRate(j); rate > 0 {
			seconds := min(float64(amount)/rate, float64(math.MaxInt32))
			least = time.Duration(seconds * float64(time.Second))
		}
	}
	if j.Runtime > 0 {
		most = j.Runtime
		if least = min(least, most); j.TimeBased {
			least = most
		}
		if most = j.StartDelay + j.RampTime + most*loops; j.RampSize > 0 {
			most = 0 // the duration of a ramp by size is unknown
		}
	}
	return j.StartDelay + least*loops, most
}

// amountOfOps is Amount with number_ios.
func amountOfOps(j *fiojob.Job) (int64, bool) {
	amount, known := Amount(j)
	smallest, _ := j.BlockBounds()
	if j.NumberIOs > 0 && (!known || j.NumberIOs < amount/smallest) {
		return j.NumberIOs * smallest, true
	}
	return amount, known
}

// byteRate is how many bytes per second the rates let one clone transfer on average, 0 if a direction has none.
func byteRate(j *fiojob.Job) float64 {
	var sum float64
	for _, d := range j.Directions() {
		rate := float64(j.Rate[d])
		if rate == 0 {
			var mean float64
			for _, s := range j.BlockSizes(d) {
				mean += float64(s.Bytes) * s.Percent / 100
			}
			rate = j.RateIOPS[d] * mean
		}
		if rate == 0 {
			return 0
		}
		sum += rate
	}
	return sum
}
