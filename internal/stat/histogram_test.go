package stat_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/stat"
)

func of(values ...uint64) *stat.Histogram {
	h := &stat.Histogram{}
	for _, v := range values {
		h.Record(v)
	}
	return h
}

var values = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) uint64 {
	// Latencies of every size, not only the large ones that a uniform draw gives.
	return rapid.Uint64().Draw(t, "v") >> rapid.IntRange(0, 63).Draw(t, "shift")
}), 0, 200)

func TestEveryValueHasItsBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64().Draw(t, "v") >> rapid.IntRange(0, 63).Draw(t, "shift")
		low, high := stat.BucketBounds(stat.BucketOf(v))
		if v < low || v > high {
			t.Fatalf("%d is outside its bucket [%d, %d]", v, low, high)
		}
		if width := float64(high - low); width > float64(low)/128 && low >= 128 {
			t.Fatalf("bucket [%d, %d] is wider than 1/128 of its value", low, high)
		}
	})
	for i := 1; i < stat.BucketCount; i++ {
		_, high := stat.BucketBounds(i - 1)
		if low, _ := stat.BucketBounds(i); low != high+1 {
			t.Fatalf("between bucket %d and %d there is a gap or an overlap: %d, %d", i-1, i, high, low)
		}
	}
	if _, high := stat.BucketBounds(stat.BucketCount - 1); high != math.MaxUint64 {
		t.Errorf("the last bucket ends at %d", high)
	}
}

// TestQuantilesAgainstSortedValues compares with the nearest-rank definition on the values themselves.
func TestQuantilesAgainstSortedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := values.Draw(t, "values")
		h := of(list...)
		if len(list) == 0 {
			if !math.IsNaN(h.Quantile(0.5)) || !math.IsNaN(h.Mean()) || !math.IsNaN(h.StdDev()) {
				t.Fatal("an empty histogram has no statistics")
			}
			return
		}
		slices.Sort(list)
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		rank := min(max(int(math.Ceil(q*float64(len(list)))), 1), len(list))
		exact := float64(list[rank-1])
		if got := h.Quantile(q); math.Abs(got-exact) > exact/256+0.5 {
			t.Fatalf("quantile %v is %v, exactly %v", q, got, exact)
		}
		if h.Min() != list[0] || h.Max() != list[len(list)-1] || h.Count() != uint64(len(list)) {
			t.Fatalf("min %d, max %d, count %d of %d", h.Min(), h.Max(), h.Count(), list)
		}
	})
}

func equal(a, b *stat.Histogram) bool {
	type bucket struct {
		i int
		n uint64
	}
	list := func(h *stat.Histogram) (all []bucket) {
		h.Buckets(func(i int, n uint64) bool { all = append(all, bucket{i, n}); return true })
		return all
	}
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*(math.Abs(x)+math.Abs(y)) }
	return slices.Equal(list(a), list(b)) && a.Count() == b.Count() && a.Min() == b.Min() && a.Max() == b.Max() &&
		near(a.Sum(), b.Sum()) && (a.Count() == 0 || near(a.Mean(), b.Mean()))
}

func merged(list ...*stat.Histogram) *stat.Histogram {
	h := &stat.Histogram{}
	for _, o := range list {
		h.Merge(o)
	}
	return h
}

func TestMergeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y, z := values.Draw(t, "x"), values.Draw(t, "y"), values.Draw(t, "z")
		a, b, c := of(x...), of(y...), of(z...)
		if !equal(merged(merged(a, b), c), merged(a, merged(b, c))) {
			t.Fatal("merging is not associative")
		}
		if !equal(merged(a, b), merged(b, a)) {
			t.Fatal("merging is not commutative")
		}
		if !equal(merged(a, &stat.Histogram{}, nil), a) {
			t.Fatal("an empty histogram is not neutral")
		}
		if !equal(merged(a, b), of(append(slices.Clone(x), y...)...)) {
			t.Fatal("merging differs from recording everything in one")
		}
		if !equal(a, of(x...)) || !equal(b, of(y...)) {
			t.Fatal("merging changed its argument")
		}
	})
}

func TestCloneAndResetAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := values.Draw(t, "x"), values.Draw(t, "y")
		h := of(x...)
		c := h.Clone()
		h.Reset()
		for _, v := range y {
			h.Record(v)
		}
		if !equal(c, of(x...)) || !equal(h, of(y...)) {
			t.Fatal("a clone or a reset shares its memory")
		}
	})
}

func TestJSONRoundTrip(t *testing.T) {
	var reused stat.Histogram // what is left over from the histogram before would show
	rapid.Check(t, func(t *rapid.T) {
		h := of(values.Draw(t, "values")...)
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		var back stat.Histogram
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if !equal(h, &back) {
			t.Fatalf("%s reads back different", text)
		}
		if err := reused.ReadJSON(text); err != nil || !equal(h, &reused) {
			t.Fatalf("%s reads into used memory as different: %v", text, err)
		}
	})
}

func TestDocumentedForm(t *testing.T) {
	text, err := json.Marshal(of(100, 101, 300))
	if want := `{"n":3,"sum":501,"sq":110201,"min":100,"max":300,"b":"DwaGu"}`; string(text) != want || err != nil {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestHostileJSONIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no object":       `[]`,
		"too far":         `{"n":1,"sum":1,"sq":1,"min":1,"max":1,"b":"ZZZZZZZZZZZZZZZZZZZZZZZZa"}`,
		"behind the last": `{"n":1,"sum":1,"sq":1,"min":1,"max":1,"b":"KZo"}`,
		"overflow":        `{"n":1,"sum":1,"sq":1,"min":0,"max":2,"b":"a18446744073709551609a18446744073709551609"}`,
		"zero count":      `{"n":0,"sum":0,"sq":0,"min":0,"max":0,"b":"a0"}`,
		"ends with skip":  `{"n":1,"sum":0,"sq":0,"min":0,"max":0,"b":"aB"}`,
		"wrong total":     `{"n":2,"sum":0,"sq":0,"min":0,"max":0,"b":"a"}`,
		"wrong minimum":   `{"n":1,"sum":9,"sq":9,"min":5,"max":9,"b":"j"}`,
		"wrong maximum":   `{"n":1,"sum":9,"sq":9,"min":9,"max":99,"b":"j"}`,
		"negative sum":    `{"n":1,"sum":-9,"sq":9,"min":9,"max":9,"b":"j"}`,
		"empty with min":  `{"n":0,"sum":0,"sq":0,"min":1,"max":1,"b":""}`,
	} {
		for _, layout := range []string{text, " " + text} { // the second is read by the general reader
			h := of(7)
			if err := json.Unmarshal([]byte(layout), h); err == nil {
				t.Errorf("%s: read %s", name, layout)
			}
			if !equal(h, of(7)) {
				t.Errorf("%s: an error changed the histogram", name)
			}
		}
	}
}

func FuzzReadJSON(f *testing.F) {
	for _, list := range [][]uint64{{}, {0}, {100, 101, 300}, {math.MaxUint64, 1}} {
		text, _ := json.Marshal(of(list...))
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var own, general stat.Histogram
		err := own.ReadJSON(text)
		spaced := append([]byte{' '}, text...)
		if generalErr := general.ReadJSON(spaced); (err == nil) != (generalErr == nil) {
			t.Fatalf("own reader: %v, general reader: %v", err, generalErr)
		}
		if err != nil {
			return
		}
		if !equal(&own, &general) {
			t.Fatal("the readers differ")
		}
		// Whatever was read must be safe to use.
		own.Merge(&general)
		_ = own.Quantile(0.99)
		if _, err := json.Marshal(&own); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkMerge(b *testing.B) {
	h, o := &stat.Histogram{}, &stat.Histogram{}
	for i := range uint64(250) {
		o.Record(80_000 + i*i*40)
	}
	b.ReportAllocs()
	for b.Loop() {
		h.Merge(o)
	}
}

func BenchmarkRecord(b *testing.B) {
	h := &stat.Histogram{}
	h.Reserve()
	b.ReportAllocs()
	var v uint64
	for b.Loop() {
		v = (v + 7919) & 0xfffff
		h.Record(80_000 + v)
	}
}

// TestCorrectedAgainstTheDefinition: HdrHistogram adds to every value v the values v−e, v−2e, … that are at least e.
func TestCorrectedAgainstTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expected := rapid.Uint64Range(1, 5000).Draw(t, "expected")
		values := rapid.SliceOfN(rapid.Uint64Range(0, 2_000_000), 1, 30).Draw(t, "values")
		h, want := &stat.Histogram{}, &stat.Histogram{}
		for _, v := range values {
			h.Record(v)
			want.Record(v)
			middle := middleOf(v)
			for missing := middle; missing >= 2*expected; {
				missing -= expected
				want.Record(missing)
			}
		}
		got := h.Corrected(expected, 0)
		if math.Abs(float64(got.Count())-float64(want.Count())) > 0.01*float64(want.Count())+float64(len(values)) {
			t.Fatalf("%d values, want %d", got.Count(), want.Count())
		}
		for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
			a, b := got.Quantile(q), want.Quantile(q)
			if math.Abs(a-b) > 0.02*b+2*float64(expected) {
				t.Fatalf("quantile %v: %v, want %v", q, a, b)
			}
		}
		if h.Count() != uint64(len(values)) {
			t.Fatal("the source changed")
		}
	})
}

// middleOf is the middle of the bucket of v.
func middleOf(v uint64) uint64 {
	low, high := stat.BucketBounds(stat.BucketOf(v))
	return low + (high-low)/2
}

// TestCorrectedStall: a closed loop that hangs for 1.9 of 30 s, with operations of 200 µs otherwise.
func TestCorrectedStall(t *testing.T) {
	h := &stat.Histogram{}
	h.RecordN(200_000, 140_500)
	h.Record(1_900_000_000)
	c := h.Corrected(200_000, 100e6)
	if got := float64(c.Count()); math.Abs(got-150_000) > 100 {
		t.Errorf("%v operations, want those of 30 s without a stall: 150,000", got)
	}
	if plain, corrected := h.Quantile(0.999), c.Quantile(0.999); plain > 201_000 || math.Abs(corrected-1.87e9) > 0.02e9 {
		t.Errorf("p99.9 is %v and corrected %v, want 200 µs and 1.87 s", plain, corrected)
	}
	if short := h.Corrected(200_000, 2e9); short.Count() != h.Count() {
		t.Error("a value below the limit is corrected")
	}
	if unchanged := h.Corrected(0, 0); unchanged.Count() != h.Count() {
		t.Error("an expected interval of 0 corrects nothing")
	}
}

// TestDifference: what was merged can be taken off again, to within the width of a bucket at the ends.
func TestDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept, taken := of(values.Draw(t, "kept")...), of(values.Draw(t, "taken")...)
		both := kept.Clone()
		both.Merge(taken)
		got := stat.Difference(both, taken)
		if got.Count() != kept.Count() || kept.Count() > 0 && (stat.BucketOf(got.Min()) != stat.BucketOf(kept.Min()) ||
			stat.BucketOf(got.Max()) != stat.BucketOf(kept.Max()) || got.Min() > kept.Min() || got.Max() < kept.Max()) {
			t.Fatalf("%d values from %d to %d, want %d from %d to %d", got.Count(), got.Min(), got.Max(), kept.Count(), kept.Min(), kept.Max())
		}
		for _, q := range []float64{0.1, 0.5, 0.9} {
			if a, b := got.Quantile(q), kept.Quantile(q); kept.Count() > 0 && math.Abs(a-b) > b/64+1 {
				t.Fatalf("quantile %g is %g, want %g", q, a, b)
			}
		}
	})
}
