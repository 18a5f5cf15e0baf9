package digest

import "math"

// Trend is a straight line through equally spaced values.
type Trend struct {
	Mean, CV float64
	Drift    float64 // change from the first to the last value along the line, as a share of the mean
	T        float64 // slope divided by its standard error
}

// Fit computes the least-squares line (Draper and Smith, Applied Regression Analysis, 3rd edition, chapter 1).
func Fit(values []float64) Trend {
	n := float64(len(values))
	if n < 3 {
		return Trend{Mean: math.NaN(), CV: math.NaN(), Drift: math.NaN(), T: math.NaN()}
	}
	var sum, sumX, sumXY, sumXX float64
	for i, v := range values {
		x := float64(i)
		sum += v
		sumX += x
		sumXY += x * v
		sumXX += x * x
	}
	mean := sum / n
	sxx := sumXX - sumX*sumX/n
	slope := (sumXY - sumX*sum/n) / sxx
	var residual, spread float64
	for i, v := range values {
		line := mean + slope*(float64(i)-sumX/n)
		residual += (v - line) * (v - line)
		spread += (v - mean) * (v - mean)
	}
	out := Trend{Mean: mean, CV: math.Sqrt(spread/n) / mean, Drift: slope * (n - 1) / mean}
	if residual == 0 {
		out.T = math.Inf(1)
		if slope == 0 {
			out.T = 0
		}
		return out
	}
	out.T = slope / math.Sqrt(residual/(n-2)/sxx)
	return out
}
