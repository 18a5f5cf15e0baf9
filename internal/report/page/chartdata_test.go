package page

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/braggdev/bragg/internal/report/draw"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/result"
)

// TestShortNumbers: what is written for charts is JSON within half of the fifth digit, and gaps are null.
func TestShortNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Draw(t, "v")
		text, err := numbersJSON{v}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var back []*float64
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%v is written as %s: %v", v, text, err)
		}
		if math.Abs(*back[0]-v) > 0.51e-4*math.Abs(v) {
			t.Fatalf("%v is written as %s", v, text)
		}
	})
	text, err := numbersJSON{0, 1234567, 0.00012, math.NaN(), math.Inf(1), -50}.MarshalJSON()
	if err != nil || string(text) != "[0,1234600,12e-5,null,null,-50]" {
		t.Errorf("written as %s, %v", text, err)
	}
}

// TestGridKeepsPeaksAndGaps: on a common grid every line keeps its extremes, gaps stay, and nothing is drawn after the
// last point.
func TestGridKeepsPeaksAndGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var points result.Points
		low, high, last := math.Inf(1), math.Inf(-1), 0.0
		n := rapid.IntRange(50, 400).Draw(t, "n")
		gapFrom := rapid.IntRange(0, n-1).Draw(t, "gap")
		gapTo := min(n, gapFrom+rapid.IntRange(0, 40).Draw(t, "length"))
		for i := range n {
			p := result.Point{Seconds: float64(i), Value: rapid.Float64Range(0, 1000).Draw(t, "v")}
			if i >= gapFrom && i < gapTo {
				p.Value = math.NaN()
			} else {
				low, high, last = min(low, p.Value), max(high, p.Value), p.Seconds
			}
			points = append(points, p)
		}
		axis := grid([]Plotted{{Points: points}}, 0, 1000, 40) // 25 s a stretch
		gotLow, gotHigh := math.Inf(1), math.Inf(-1)
		for i, v := range axis.Lines[0].Y {
			if math.IsNaN(v) {
				continue
			}
			gotLow, gotHigh = min(gotLow, v), max(gotHigh, v)
			at := axis.X[i]
			if at > last+25 {
				t.Fatalf("a value at %v after the last point at %v", at, last)
			}
			if from := math.Floor(at/25) * 25; from >= float64(gapFrom) && from+25 <= float64(gapTo) {
				t.Fatalf("a value at %v within the gap from %d to %d", at, gapFrom, gapTo)
			}
		}
		if gotLow != low || gotHigh != high {
			t.Fatalf("the extremes are %v and %v, want %v and %v", gotLow, gotHigh, low, high)
		}
	})
}

// TestManySeriesShareAnAxis: lines with different times stay exact while they are few and come onto one grid when the
// page would become slow.
func TestManySeriesShareAnAxis(t *testing.T) {
	lines := func(n, points int) []Plotted {
		var list []Plotted
		for i := range n {
			l := Plotted{}
			for k := range points {
				l.Points = append(l.Points, result.Point{Seconds: float64(k) + float64(i)/1000, Value: float64(k)})
			}
			list = append(list, l)
		}
		return list
	}
	if list, reduced := Tables(lines(3, 100), 0, 100); reduced || len(list) != 3 {
		t.Errorf("3 lines of 100 points: %d axes, reduced %v", len(list), reduced)
	}
	list, reduced := Tables(lines(100, 1000), 0, 1000)
	if !reduced || len(list) != 1 || len(list[0].Lines) != 100 {
		t.Fatalf("100 lines with times of their own: %d axes, reduced %v", len(list), reduced)
	}
	if n := len(list[0].X) * 100; n > chartPointsMax {
		t.Errorf("%d points are drawn", n)
	}
}

func TestSparkline(t *testing.T) {
	points := result.Points{{Seconds: 5, Value: 8}, {Seconds: 15, Value: 8}, {Seconds: 25, Value: math.NaN()}, {Seconds: 35, Value: 4}}
	if got := draw.Sparkline(points, 0, 40, 8); got != "████  ▅▅" {
		t.Errorf("the sparkline is %q", got)
	}
	if got := draw.Sparkline(nil, 0, 40, 8); got != "" {
		t.Errorf("without points it is %q", got)
	}
	if got := draw.Sparkline(result.Points{{Seconds: 1, Value: 3}}, 0, 2, 4); got != "████" {
		t.Errorf("a single point is drawn as %q", got)
	}
}
