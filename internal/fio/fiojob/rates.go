package fiojob

import (
	"math"
	"strconv"
	"strings"
)

// rateMax bounds a scaled rate; float64 holds it exactly.
const rateMax = 1 << 52

// ScaleRates returns the file with every rate, and every rate below which a job fails, multiplied by factor. Jobs without a
// rate stay as they are. Rates in operations are rounded to whole ones and rates in bytes to whole bytes, at least 1.
func (f *File) ScaleRates(factor float64) *File {
	if factor == 1 {
		return f
	}
	return f.each(func(j Job) Job {
		j = j.clone()
		j.scaleRate("rate", &j.Rate, factor)
		j.scaleRate("rate_min", &j.Control.RateMin, factor)
		j.scaleRate("rate_iops_min", &j.Control.RateIOPSMin, factor)
		var whole [3]int64
		for d, r := range j.RateIOPS {
			whole[d] = int64(r)
		}
		j.scaleRate("rate_iops", &whole, factor)
		for d, r := range whole {
			j.RateIOPS[d] = float64(r)
		}
		return j
	})
}

// scaleRate multiplies the rates of the directions that have one.
func (j *Job) scaleRate(key string, rates *[3]int64, factor float64) {
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
	j.set(key, strings.Join(text, ","))
}
