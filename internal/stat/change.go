package stat

import (
	"math"
	"math/rand/v2"
)

const (
	// ChangeValuesMin is how many values a change can be found in; with fewer, chance alone orders them as a change would too often.
	ChangeValuesMin = 8
	// changeSideMin is how many values are on each side of a change: one alone may be an outlier.
	changeSideMin = 2
	permutations  = 1999
	// changeLevel is below Level, so that of a few hundred stable histories no more than 5 % have a change by chance.
	changeLevel = 0.035
	changeSeed  = 1 // results are reproducible
)

// Changes returns the indices at which the level of a series of positive values changes, in rising order: the first value after each
// change. A change is where the means of the logarithms before and after differ most, if that difference is larger than in all but
// 3.5 % of random orders of the same values; both sides are then searched again (binary segmentation). A series whose values are
// exchangeable has a change with at most that probability, whatever their distribution.
func Changes(values []float64) []int {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	return changes(logs, 0, rand.New(rand.NewPCG(changeSeed, uint64(len(values)))))
}

func changes(logs []float64, offset int, random *rand.Rand) []int {
	if len(logs) < ChangeValuesMin {
		return nil
	}
	at, largest := largestStep(logs)
	if largest <= 0 {
		return nil
	}
	order, asLarge := append([]float64(nil), logs...), 0
	for range permutations {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if _, step := largestStep(order); step >= largest*(1-1e-12) {
			asLarge++
		}
	}
	if float64(1+asLarge)/(1+permutations) >= changeLevel {
		return nil
	}
	list := changes(logs[:at], offset, random)
	list = append(list, offset+at)
	return append(list, changes(logs[at:], offset+at, random)...)
}

// largestStep returns where the sum of squares between the two sides is largest, and that sum.
func largestStep(values []float64) (at int, largest float64) {
	n, total := float64(len(values)), 0.0
	mean := Mean(values)
	for i := range len(values) - changeSideMin {
		total += values[i] - mean
		before := float64(i + 1)
		if i+1 < changeSideMin {
			continue
		}
		if between := total * total * n / (before * (n - before)); between > largest {
			at, largest = i+1, between
		}
	}
	return at, largest
}

// Band returns the bounds within which a further value of the same level lies with Confidence, and the geometric mean; the bounds are
// NaN for fewer than three values.
func Band(values []float64) (mean, low, high float64) {
	m, ok := momentsOf(logarithms(values))
	switch {
	case len(values) == 1:
		return values[0], math.NaN(), math.NaN()
	case !ok:
		return math.NaN(), math.NaN(), math.NaN()
	case len(values) < 3:
		return math.Exp(m.mean), math.NaN(), math.NaN()
	default:
		half := StudentQuantile(1-Level/2, m.n-1) * math.Sqrt(m.variance*(1+1/m.n))
		return math.Exp(m.mean), math.Exp(m.mean - half), math.Exp(m.mean + half)
	}
}
