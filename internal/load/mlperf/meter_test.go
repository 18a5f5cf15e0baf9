package mlperf

import (
	"math"
	"testing"
)

// Two accelerators, three steps of 10, the second one waits for 5 in each: an epoch as DLIO computes it by hand.
func TestAUByDefinition(t *testing.T) {
	m := &meter{compute: 10, batch: 4}
	m.beginEpoch(2, 100)
	type step struct{ begin0, begin1 int64 }
	for _, s := range []step{{107, 112}, {122, 127}, {137, 142}} {
		m.begin(0, s.begin0)
		m.begin(1, s.begin1)
		m.end(0, s.begin0+10)
		m.end(1, s.begin1+10)
		m.stepped(s.begin1 + 10)
	}
	if busy, measured := m.look(152); busy != 40 || measured != (152-117)+(152-122) {
		t.Errorf("busy %d of %d", busy, measured)
	}
	r := m.endEpoch(true)
	// The epoch takes 52. Of accelerator 0 the first step takes 17, of accelerator 1 it takes 22.
	want := (20.0/(52-17) + 20.0/(52-22)) / 2
	if math.Abs(r.au-want) > 1e-12 || r.steps != 3 || math.Abs(r.samples-3*4*2/52e-9)/r.samples > 1e-12 {
		t.Errorf("%+v, want AU %g", r, want)
	}
	m.beginEpoch(2, 152)
	m.begin(0, 160)
	m.begin(1, 160)
	if busy, _ := m.look(165); busy != 40 {
		t.Errorf("a first step counts: %d", busy)
	}
	if r := m.endEpoch(true); r.steps != 0 || !math.IsNaN(r.au) || len(m.epochs) != 1 {
		t.Errorf("an epoch without a step: %+v, %d epochs", r, len(m.epochs))
	}
	if s := m.sofar(); s.au != r.au || s.steps != 3 {
		t.Errorf("total %+v", s)
	}
}

func TestAUWithoutMeasuredStep(t *testing.T) {
	m := &meter{compute: 10, batch: 1}
	m.beginEpoch(1, 0)
	m.begin(0, 5)
	m.end(0, 15)
	m.stepped(15)
	if r := m.endEpoch(true); !math.IsNaN(r.au) || r.steps != 1 {
		t.Errorf("%+v", r)
	}
}

// A search finds the last number that reaches the threshold, whatever it is, and tries it twice.
func TestSearchFindsEveryNumber(t *testing.T) {
	for most := 1; most <= 40; most++ {
		for limit := 0; limit <= most; limit++ {
			s, tried := &search{most: most}, map[int]int{}
			for range 100 {
				n, confirming := s.next()
				if n == 0 {
					break
				}
				if n < 1 || n > most {
					t.Fatalf("most %d, limit %d: tries %d", most, limit, n)
				}
				tried[n]++
				s.add(n, n <= limit, confirming)
			}
			if s.met != limit || s.confirmed != (limit > 0) || limit > 0 && tried[limit] != 2 {
				t.Fatalf("most %d, limit %d: %+v, tried %v", most, limit, s, tried)
			}
		}
	}
}

// A number that reaches the threshold only once is not the answer.
func TestSearchIsNotDecidedByLuck(t *testing.T) {
	s := &search{most: 16}
	for range 100 {
		n, confirming := s.next()
		if n == 0 {
			break
		}
		s.add(n, n <= 5 || n == 6 && !confirming, confirming)
	}
	if s.met != 5 || !s.confirmed {
		t.Errorf("%+v", s)
	}
}

// The sizes of files have the mean that is stated, and the spread of DLIO's generator.
func TestSizesOfFiles(t *testing.T) {
	const files = 20_000
	d := &dataset{key: 7, files: files, samplesInFile: 1, mean: 146_600_628, stdev: 68_341_808}
	sum, squares, least := 0.0, 0.0, math.Inf(1)
	for i := range files {
		n := float64(d.fileBytes(i))
		sum, squares, least = sum+n, squares+n*n, min(least, n)
	}
	mean := sum / files
	spread := math.Sqrt(squares/files - mean*mean)
	if math.Abs(mean/d.mean-1) > 0.01 || math.Abs(spread/(d.stdev/math.Sqrt2)-1) > 0.04 || least < 1 {
		t.Errorf("mean %.4g, spread %.4g, least %g", mean, spread, least)
	}
	seen := make([]bool, files)
	for _, f := range d.order(3) {
		if seen[f] {
			t.Fatalf("file %d is twice in an epoch", f)
		}
		seen[f] = true
	}
}

// Storage that is slower than the accelerator shows in the rate of reads, although the steps of a short trial use what was read ahead.
func TestSupplyOfShortTrial(t *testing.T) {
	m := &meter{compute: 10, batch: 1, ahead: 4}
	m.beginEpoch(1, 0)
	var now int64
	for step := range 8 {
		m.ready(0, step, int64(20*(step+1))) // a batch every 20
	}
	now = 80
	for range 5 { // four were read ahead
		m.begin(0, now)
		now += 10
		m.end(0, now)
		m.stepped(now)
	}
	if r := m.endEpoch(true); r.au != 1 || math.Abs(r.supply-0.5) > 1e-12 {
		t.Errorf("AU %g, supply %g, want 1 and 0.5", r.au, r.supply)
	}
}

// An epoch that is cut off counts only while there is no other.
func TestCutEpoch(t *testing.T) {
	m := &meter{compute: 10, batch: 1}
	epoch := func(begin, wait int64, complete bool) {
		m.beginEpoch(1, begin)
		for range 3 {
			m.begin(0, begin+wait)
			begin += wait + 10
			m.end(0, begin)
			m.stepped(begin)
		}
		m.endEpoch(complete)
	}
	epoch(0, 10, false)
	if got := m.sofar().au; got != 0.5 {
		t.Errorf("the first epoch, cut off: AU %g", got)
	}
	m.forget()
	epoch(0, 10, true)
	epoch(1000, 0, false)
	if got := m.sofar().au; got != 0.5 {
		t.Errorf("a later epoch that was cut off counts: AU %g", got)
	}
}
