package stat

import "math"

// blocksMin is how many points, and how many blocks of them, an estimate of their fluctuation needs.
const (
	blockPointsMin = 10
	blocksMin      = 4
)

// BlockLength returns how many successive points belong together because they correlate: the length of blocks for a circular
// block bootstrap of their mean, by Politis and White (2004, with the correction of 2009) from their autocorrelation. It is 1 for
// independent points, and at most a quarter of them.
func BlockLength(points []float64) int {
	length, _ := blockLength(points)
	return length
}

// blockLength also returns the long-run variance of the points: n times the variance of their mean, by the same estimate.
func blockLength(points []float64) (length int, longRun float64) {
	n := len(points)
	most := max(1, n/blocksMin)
	lags := min(n-1, most+max(5, int(math.Sqrt(math.Log10(float64(max(n, 1)))))))
	covariance := autocovariance(points, lags)
	if len(covariance) == 0 || covariance[0] == 0 {
		return 1, 0
	}
	// The correlation is over after the lag that a run of insignificant ones follows.
	significant := 2 * math.Sqrt(math.Log10(float64(n))/float64(n))
	quiet, last := max(5, int(math.Sqrt(math.Log10(float64(n))))), 0
	for lag := 1; lag <= lags && lag <= last+quiet; lag++ {
		if math.Abs(covariance[lag]/covariance[0]) > significant {
			last = lag
		}
	}
	if last == 0 {
		return 1, covariance[0]
	}
	window := min(2*last, lags)
	spectrum, slope := covariance[0], 0.0
	for lag := 1; lag <= window; lag++ {
		weight := min(1, 2*(1-float64(lag)/float64(window))) // flat-top
		spectrum += 2 * weight * covariance[lag]
		slope += 2 * weight * float64(lag) * covariance[lag]
	}
	if spectrum <= 0 {
		return 1, covariance[0]
	}
	best := math.Cbrt(2 * slope * slope / (4.0 / 3 * spectrum * spectrum) * float64(n))
	return min(max(1, int(math.Ceil(best))), most), spectrum
}

// autocovariance returns the covariances of points at the lags 0 to lags, divided by the number of points.
func autocovariance(points []float64, lags int) []float64 {
	mean := Mean(points)
	var list []float64
	for lag := 0; lag <= lags; lag++ {
		sum := 0.0
		for i := lag; i < len(points); i++ {
			sum += (points[i] - mean) * (points[i-lag] - mean)
		}
		list = append(list, sum/float64(len(points)))
	}
	return list
}

// Mean is the arithmetic mean, NaN without values.
func Mean(points []float64) float64 {
	sum := 0.0
	for _, v := range points {
		sum += v
	}
	return sum / float64(len(points))
}

// BootstrapError returns the standard error of the mean of points that correlate, by the circular block bootstrap, and the degrees
// of freedom of Student's t that belongs to it; NaN for too few points. It is the exact limit of infinitely many resamples: the
// variance of the means of all blocks, by their number. The degrees of freedom are those of the variance of as many independent
// values with the kurtosis of these means: where few blocks contribute most of the variance, it is less certain.
func BootstrapError(points []float64) (standardError, df float64) {
	n := len(points)
	if n < blockPointsMin {
		return math.NaN(), math.NaN()
	}
	length, longRun := blockLength(points)
	blocks := float64(n / length)
	mean, squares, fourths, sum := Mean(points), 0.0, 0.0, 0.0
	for i := range length {
		sum += points[i]
	}
	for i := range n {
		square := (sum/float64(length) - mean) * (sum/float64(length) - mean)
		squares, fourths = squares+square/float64(n), fourths+square*square/float64(n)
		sum += points[(i+length)%n] - points[i]
	}
	if squares == 0 {
		return 0, blocks - 1
	}
	// Means of blocks around the mean of the same points vary less than around the true mean, by 1 − 1/blocks. Blocks cut
	// correlations at their ends; the sum of the autocovariances does not.
	variance := max(squares*float64(length)/float64(n)*blocks/(blocks-1), longRun/float64(n))
	kurtosis := max(3, fourths/squares/squares)
	return math.Sqrt(variance), max(1, 2*blocks/(kurtosis-1)-1)
}
