package stages

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// pointsMin is the number of rates from which a curve has an answer.
	pointsMin = 3
	// leaves is how many times the floor response time has where it has left it. Twice is where an M/M/1 queue is half busy; less is
	// within the scatter of neighboring points.
	leaves = 2.0
)

// sentences answers for each curve.
func sentences(s *result.Stages) []string {
	list, curves := []string{}, []int{}
	for i := range s.List {
		if c := s.List[i].Curve; c > 0 && !slices.Contains(curves, c) {
			curves = append(curves, c)
		}
	}
	for _, c := range curves {
		if text := sentence(s, c); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// sentence says at which rate response time leaves its floor; "" without enough rates.
func sentence(s *result.Stages, curve int) string {
	var points []result.Stage
	var most *result.Stage
	for i := range s.List {
		one := &s.List[i]
		switch {
		case one.Curve != curve:
		case one.Asked > 0:
			points = append(points, *one)
		case most == nil || one.Rate > most.Rate:
			most = one
		}
	}
	if len(points) < pointsMin {
		return ""
	}
	slices.SortStableFunc(points, func(a, b result.Stage) int { return cmp.Compare(a.Asked, b.Asked) })
	amount := func(v result.Number) string { return unit.FormatCount(float64(v)) + " " + s.Unit }
	text := s.Workload + ": "
	for i, kind := range []struct {
		name string
		of   func(*result.Stage) result.Number
	}{
		{"the median response time", func(one *result.Stage) result.Number { return one.Median }},
		{"p99", func(one *result.Stage) result.Number { return one.P99 }},
	} {
		if i > 0 {
			text += "; "
		}
		floor, at := leave(points, kind.of)
		switch {
		case math.IsNaN(floor):
			text += kind.name + " is unknown"
		case scattered(points[:at], kind.of, floor):
			text += fmt.Sprintf("%s scatters too much to have a floor (%s to %s)", kind.name, unit.FormatLatency(floor), unit.FormatLatency(largest(points, kind.of)))
		case at == len(points):
			text += fmt.Sprintf("%s stays below twice its floor of %s up to %s", kind.name, unit.FormatLatency(floor), amount(points[at-1].Rate))
		default:
			before, after := points[at-1].Rate, points[at].Rate
			text += fmt.Sprintf("%s leaves its floor of %s between %s and %s", kind.name, unit.FormatLatency(floor), amount(min(before, after)), amount(max(before, after)))
		}
	}
	if most != nil {
		text += "; the maximum is " + amount(most.Rate)
	}
	return text + "."
}

// scattered reports whether points at rates below have left the floor as well: then something else than the rate decides.
func scattered(points []result.Stage, of func(*result.Stage) result.Number, floor float64) bool {
	return slices.ContainsFunc(points, func(one result.Stage) bool { return !(float64(of(&one)) <= leaves*floor) })
}

func largest(points []result.Stage, of func(*result.Stage) result.Number) float64 {
	most := 0.0
	for i := range points {
		if v := float64(of(&points[i])); v > most {
			most = v
		}
	}
	return most
}

// leave returns the least value of all points, and the index of the first point that has left it, with all points of higher rates.
func leave(points []result.Stage, of func(*result.Stage) result.Number) (floor float64, at int) {
	floor = math.NaN()
	for i := range points {
		if v := float64(of(&points[i])); math.IsNaN(floor) || v < floor {
			floor = v
		}
	}
	at = len(points)
	for at > 0 && float64(of(&points[at-1])) > leaves*floor {
		at--
	}
	return floor, at
}
