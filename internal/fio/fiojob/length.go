package fiojob

import (
	"math"
	"slices"
	"time"
)

// Length bounds how long jobs take by what the file says: least is the time that rates and runtimes need on the fastest
// storage, most what runtimes allow, 0 where a job runs until its bytes are moved. Jobs of one group start together,
// and a stonewall waits for the jobs before it.
func Length(jobs []Job) (least, most time.Duration) {
	var phaseLeast, phaseMost time.Duration
	bounded := true
	for i := range jobs {
		j := &jobs[i]
		if j.Stonewall {
			least, most = least+phaseLeast, most+phaseMost
			phaseLeast, phaseMost = 0, 0
		}
		from, to := j.length()
		phaseLeast, phaseMost = max(phaseLeast, from), max(phaseMost, to)
		bounded = bounded && to > 0
	}
	least, most = least+phaseLeast, most+phaseMost
	if !bounded {
		most = 0
	}
	return least, most
}

// Timed reports whether any job ends by time.
func Timed(jobs []Job) bool {
	return slices.ContainsFunc(jobs, func(j Job) bool { return j.Runtime > 0 })
}

func (j *Job) length() (least, most time.Duration) {
	loops := time.Duration(max(1, j.Loops))
	if amount, known := j.amountOfOps(); known {
		if rate := j.byteRate(); rate > 0 {
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
			most = 0 // nobody knows how long a ramp by size takes
		}
	}
	return j.StartDelay + least*loops, most
}

// amountOfOps is Amount with number_ios.
func (j *Job) amountOfOps() (int64, bool) {
	amount, known := j.Amount()
	smallest, _ := j.BlockBounds()
	if j.NumberIOs > 0 && (!known || j.NumberIOs < amount/smallest) {
		return j.NumberIOs * smallest, true
	}
	return amount, known
}

// byteRate is how many bytes a second the rates let one clone move on average, 0 where a direction has none.
func (j *Job) byteRate() float64 {
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
