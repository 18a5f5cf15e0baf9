package scaling

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/unit"
)

// Data sets of public sources: specsdm91 and raytracer are those of the R package usl, mysql32 are Schwartz's measurements of
// MySQL, aiImage is a published SPECstorage result. They are validation data: no constant of this package was chosen with them.
var (
	raytracer = points(1, 20, 4, 78, 8, 130, 12, 170, 16, 190, 20, 200, 24, 210, 28, 230, 32, 260, 48, 280, 64, 310)
	specsdm91 = points(1, 64.9, 18, 995.9, 36, 1652.4, 72, 1853.2, 108, 1828.9, 144, 1775.0, 216, 1702.2)
	specRound = points(1, 65, 18, 996, 36, 1652, 72, 1853, 108, 1829, 144, 1775, 216, 1702)
	mysql32   = series(955.16, 1878.91, 2688.01, 3548.68, 4315.54, 5130.43, 5931.37, 6531.08, 7219.8, 7867.61, 8278.71, 8646.7, 9047.84,
		9426.55, 9645.37, 9897.24, 10097.6, 10240.5, 10532.39, 10798.52, 11151.43, 11518.63, 11806, 12089.37, 12075.41, 12177.29, 12211.41,
		12158.93, 12155.27, 12118.04, 12140.4, 12074.39)
	synthetic = points(1, 1, 2, 1.8868, 4, 3.0769, 6, 3.5294, 8, 3.5398, 10, 3.3557)
	aiImage   = points(8.9, 13051, 18.3, 26103, 27.8, 39155, 39.1, 52206, 50.9, 65258, 64.3, 78310, 111.7, 91345, 222, 104413, 554, 117453,
		1382, 130495)
)

func points(pairs ...float64) (out []Point) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, Point{pairs[i], pairs[i+1]})
	}
	return out
}

func series(throughput ...float64) (out []Point) {
	for i, x := range throughput {
		out = append(out, Point{float64(i + 1), x})
	}
	return out
}

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Abs(want)) {
		t.Errorf("%s = %.9g, want %.9g within %g", what, got, want, relative)
	}
}

// The published coefficients of R's nls and scipy.
func TestPublishedCoefficients(t *testing.T) {
	for _, c := range []struct {
		name                 string
		data                 []Point
		sigma, kappa, lambda float64
		r2, residual         float64
	}{
		{"specsdm91", specsdm91, 0.0277285, 1.043658e-4, 89.99523, 0.98956, 82.85},
		{"specsdm91 rounded", specRound, 0.0277289, 1.04348e-4, 89.9871, 0.98961, 82.63},
		{"raytracer", raytracer, 0.0577708, 0, 21.8488, 0.99070, 9.336},
		{"raytracer, first six", raytracer[:6], 0.0244440, 0.001626809, 20.85605, 0.99960, 1.834},
		{"mysql32", mysql32, 0.02671595, 7.690939e-4, 995.6488, 0.99715, 187.9},
		{"mysql32, first ten", mysql32[:10], 0.0170028, 4.46539e-4, 938.3793, 0.99979, 37.9},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Analyze(c.data).Fit
			near(t, "sigma", f.Sigma.Value, c.sigma, 1e-4)
			near(t, "kappa", f.Kappa.Value, c.kappa, 1e-4)
			near(t, "lambda", f.Lambda.Value, c.lambda, 1e-4)
			near(t, "R²", f.R2, c.r2, 1e-5)
			near(t, "residual error", f.ResidualError, c.residual, 1e-3)
		})
	}
	f := Analyze(synthetic).Fit // its throughput is rounded to four decimals
	near(t, "sigma", f.Sigma.Value, 0.02, 1e-3)
	near(t, "kappa", f.Kappa.Value, 0.02, 1e-4)
	near(t, "peak", f.Peak.Value, 7, 1e-4)
}

func TestPublishedPeaksAndPredictions(t *testing.T) {
	spec := Analyze(specsdm91)
	near(t, "specsdm91 N*", spec.Fit.Peak.Value, 96.5194, 1e-5)
	near(t, "specsdm91 X*", spec.Fit.PeakThroughput.Value, 1883.9, 1e-4)
	mysql := Analyze(mysql32)
	near(t, "mysql N*", mysql.Fit.Peak.Value, 35.574, 1e-4)
	near(t, "mysql X*", mysql.Fit.PeakThroughput.Value, 12342.85, 1e-6)
	for n, want := range map[float64]float64{20: 11063.633, 35: 12341.75} {
		x, _, _ := mysql.Predict(n)
		near(t, "mysql X", x.Value, want, 1e-6)
	}
	rounded := Analyze(specRound)
	for n, want := range map[float64]float64{10: 714.779, 50: 1721.0006, 100: 1883.279, 300: 1447.464} {
		x, beyond, refused := rounded.Predict(n)
		if refused != nil || beyond != (n > 216) {
			t.Errorf("X(%v): extrapolated %v, refused %v", n, beyond, refused)
		}
		near(t, "rounded X", x.Value, want, 1e-4) // the published tool stops its fit early
	}
	six := Analyze(raytracer[:6])
	near(t, "raytracer N*", six.Fit.Peak.Value, 24.488, 1e-4)
	near(t, "raytracer X*", six.Fit.PeakThroughput.Value, 203.49, 1e-4)
	near(t, "raytracer limit", Analyze(raytracer).Fit.Limit.Value, 378.20, 1e-4)
}

// Restrictions and refusals, each with the sentence that people read.
func TestDoubt(t *testing.T) {
	flat := points(1, 100, 2, 100, 3, 100, 4, 100, 5, 100, 6, 100)
	for _, c := range []struct {
		name     string
		data     []Point
		codes    []Code // refusals, then notes
		sentence string
	}{
		{"peak", specsdm91, []Code{CodeMisfit}, "Throughput peaks near 97 workers (78 to 157), at 1.88k (1.75k to 2.03k); contention 2.77 %, coherency 0.010 %."},
		{"beyond the data", mysql32, []Code{CodeBeyondData}, "Throughput would peak near 36 workers (32 to 40)"},
		{"too far", mysql32[:10], []Code{CodeFarPeak, CodePeakOpen}, "Throughput still grows at 10 workers, the most measured, where it reaches 82.4 % of linear scaling"},
		{"negative", raytracer, []Code{CodeNegative}, "Throughput has no peak up to 64 workers and approaches 378 (346 to 417); contention 5.78 %, coherency 0 %."},
		{"linear", points(1, 10, 2, 20, 4, 40, 8, 80, 16, 160, 32, 320), nil, "Throughput grows linearly up to 32 workers: contention at most 0"},
		{"flat", flat, nil, "More workers do not increase throughput: it is highest at 1"},
		{"falling", points(1, 100, 2, 90, 3, 80, 4, 70, 5, 62, 6, 55), nil, "More workers do not increase throughput"},
		{"an open loop has no such curve", aiImage, []Code{CodeMisfit, CodeNegative}, "Throughput has no peak"},
		{"few points", mysql32[:5], []Code{CodeFewPoints}, "Where throughput stops growing is unknown: Measured: 5 different numbers of workers. A fit of three coefficients needs at least 6."},
		{"few numbers", append(points(1, 1, 2, 2, 3, 3), points(1, 1, 2, 2, 3, 3)...), []Code{CodeFewPoints}, "Where throughput stops growing is unknown: Measured: 3 different"},
		{"noise", points(1, 50, 2, 10, 3, 80, 4, 20, 5, 90, 6, 30, 7, 60), []Code{CodePoorFit}, "Where throughput stops growing is unknown: The law explains only"},
		{"nothing", nil, []Code{CodeFewPoints}, "Where throughput stops growing is unknown: Measured: 0 different numbers"},
		{"zeros", points(1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0), []Code{CodeNoThroughput}, "Where throughput stops growing is unknown: Every throughput is zero."},
		{"a bad point", points(0, 1), []Code{CodeBadPoint}, "Where throughput stops growing is unknown: Point 1 has 0 workers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := Analyze(c.data)
			if got := a.Sentence(names); !strings.HasPrefix(got, c.sentence) {
				t.Errorf("sentence: %s\nwant:     %s", got, c.sentence)
			}
			var codes []Code
			for _, n := range slices.Concat(a.Refused, a.Notes) {
				codes = append(codes, n.Code)
			}
			for _, code := range c.codes {
				if !slices.Contains(codes, code) {
					t.Errorf("notes have the codes %v, want %v", codes, code)
				}
			}
			if c.codes == nil && codes != nil {
				t.Errorf("notes have the codes %v, want none: %v", codes, a.Notes)
			}
		})
	}
}

var names = Names{Workers: "workers", Throughput: unit.FormatCount}

// 2,450 operations per second of one worker on twelve nodes, 99.926 % "linear", with a peak at 600 workers: N may be large.
// 1 − σ is not the share of linear scaling, which is 42.6 % there.
func TestManyWorkers(t *testing.T) {
	a := Analyze(points(1, 2450, 12, 29152, 48, 112964, 288, 489385, 480, 590168, 576, 601837))
	near(t, "sigma", a.Fit.Sigma.Value, 0.00074, 1e-2)
	near(t, "kappa", a.Fit.Kappa.Value, 2.7757e-6, 1e-3)
	near(t, "peak", a.Fit.Peak.Value, 600, 1e-3)
	near(t, "share", a.Rows[5].Share, 0.4265, 1e-3)
	if x, _, _ := a.Predict(1152); math.Abs(x.Value-509e3) > 5e3 {
		t.Errorf("X(1152) = %v", x)
	}
}

// Without bounds the fit of raytracer has a negative coherency: the known reason for bounds.
func TestUnboundedFitIsReported(t *testing.T) {
	u := Analyze(raytracer).Fit.Unbounded
	near(t, "sigma", u.Sigma, 0.0781479, 1e-4)
	near(t, "kappa", u.Kappa, -2.011e-4, 1e-3)
	near(t, "lambda", u.Lambda, 24.7662, 1e-4)
}

func TestPredictRefusesFarExtrapolation(t *testing.T) {
	a := Analyze(mysql32[:10])
	if _, beyond, refused := a.Predict(20); !beyond || refused != nil {
		t.Errorf("twice the data: extrapolated %v, refused %v", beyond, refused)
	}
	if _, _, refused := a.Predict(21); refused == nil || refused.Code != CodeFarPeak {
		t.Errorf("more than twice the data: refused %v", refused)
	}
	if _, _, refused := Analyze(mysql32[:3]).Predict(2); refused == nil || refused.Code != CodeFewPoints {
		t.Errorf("without a fit: refused %v", refused)
	}
}

// A database on one node and on forty: 85.7 % of forty times one.
func TestDensity(t *testing.T) {
	a := Analyze(points(1, 64, 40, 2194))
	near(t, "share", a.Rows[1].Share, 0.857, 1e-3)
	want := "Density: 40 workers reach 2.19k, which is 85.7 % of 40 × 64 (one worker, as measured); platform overhead 14.3 %."
	if got := a.Density(names); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// drawnLaw is a law whose peak and noise are like those of measured systems, and the numbers of workers to measure.
func drawnLaw(draw func(low, high float64) float64) (Coefficients, []float64) {
	c := Coefficients{Lambda: math.Pow(10, draw(-3, 7)), Sigma: draw(0.005, 0.2)}
	peak := draw(8, 100)
	c.Kappa = (1 - c.Sigma) / peak / peak
	var workers []float64
	for i := range 6 + int(draw(0, 15)) {
		workers = append(workers, 1+math.Round(float64(i)*max(1, peak/draw(4, 8))))
	}
	return c, workers
}

func TestRecoversExactCoefficients(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c, workers := drawnLaw(func(low, high float64) float64 { return rapid.Float64Range(low, high).Draw(r, "number") })
		var data []Point
		for _, n := range workers {
			data = append(data, Point{n, c.Throughput(n)})
		}
		d := newData(data)
		best, ok := d.bounded()
		got := d.coefficients(best)
		for _, v := range [][2]float64{{got.Lambda, c.Lambda}, {got.Sigma, c.Sigma}, {got.Kappa, c.Kappa}} {
			if !ok || math.Abs(v[0]-v[1]) > 1e-6*v[1] {
				r.Fatalf("%v has the coefficients %+v, fitted %+v", data, c, got)
			}
		}
	})
}

// Intervals hold the truth in about 95 of 100 noisy data sets. Calibration data is drawn here; the published sets are not used.
func TestIntervalsCoverTheTruth(t *testing.T) {
	const seed = 41
	sets, tolerance := 600, 0.027 // three standard errors of a share
	if testing.Short() {
		sets, tolerance = 100, 0.065
	}
	random := rand.New(rand.NewPCG(seed, 0))
	quantities := []string{"lambda", "sigma", "kappa", "peak", "peak throughput", "X at the middle", "X at twice the data"}
	covered := make([]int, len(quantities))
	fitted := 0
	for range sets {
		c, workers := drawnLaw(func(low, high float64) float64 { return low + (high-low)*random.Float64() })
		most := slices.Max(workers)
		scatter := 0.02 * c.Throughput(math.Min(most, math.Sqrt((1-c.Sigma)/c.Kappa)))
		var data []Point
		for _, n := range workers {
			data = append(data, Point{n, max(0, c.Throughput(n)+scatter*random.NormFloat64())})
		}
		a := Analyze(data)
		if a.Fit == nil {
			continue
		}
		fitted++
		peak := math.Sqrt((1 - c.Sigma) / c.Kappa)
		// Where the fit has no peak, its interval is open above.
		foundPeak, foundTop := Estimate{0, 0, math.Inf(1)}, Estimate{0, 0, math.Inf(1)}
		if a.Fit.Peak != nil {
			foundPeak = *a.Fit.Peak
		}
		if a.Fit.PeakThroughput != nil {
			foundTop = *a.Fit.PeakThroughput
		}
		for i, q := range []struct {
			Estimate
			truth float64
		}{
			{a.Fit.Lambda, c.Lambda},
			{a.Fit.Sigma, c.Sigma},
			{a.Fit.Kappa, c.Kappa},
			{foundPeak, peak},
			{foundTop, c.Throughput(peak)},
			{a.profiles.throughput(most / 2), c.Throughput(most / 2)},
			{a.profiles.throughput(2 * most), c.Throughput(2 * most)},
		} {
			if q.Low <= q.truth && q.truth <= q.High {
				covered[i]++
			}
		}
	}
	for i, name := range quantities {
		share := float64(covered[i]) / float64(fitted)
		t.Logf("%-20s %.1f %% of %d", name, share*100, fitted)
		if math.Abs(share-0.95) > tolerance {
			t.Errorf("seed %d: %s covered in %.1f %% of %d sets", seed, name, share*100, fitted)
		}
	}
}

func TestNeverNaN(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		number := rapid.OneOf(rapid.Float64Range(0, 100), rapid.Float64Range(0, 1e300), rapid.Map(rapid.IntRange(0, 20), func(i int) float64 { return float64(i) }))
		var data []Point
		workers := rapid.OneOf(number, rapid.Map(rapid.IntRange(1, 200), func(i int) float64 { return float64(i) }))
		for range rapid.OneOf(rapid.IntRange(0, 8), rapid.IntRange(8, 16)).Draw(r, "points") {
			n, x := workers.Draw(r, "workers"), number.Draw(r, "throughput")
			data = append(data, Point{n, x})
		}
		a := Analyze(data)
		finite(r, reflect.ValueOf(*a), "Analysis")
		if text, err := json.Marshal(a); err != nil {
			r.Fatalf("%v: %v %s", data, err, text)
		}
		if s := a.Sentence(names); s == "" || strings.Contains(s, "NaN") {
			r.Fatalf("sentence %q", s)
		}
	})
}

// finite fails for a NaN anywhere, and for an infinity except in the upper end of an interval.
func finite(r *rapid.T, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Float64:
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) && !(strings.HasSuffix(path, ".High") && f > 0) {
			r.Fatalf("%s is %v", path, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				finite(r, v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			finite(r, v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			finite(r, v.Index(i), path)
		}
	}
}

func TestScaleInvariance(t *testing.T) {
	for _, scale := range []float64{1e-200, 1e-6, 3, 1e9, 1e200} {
		var scaled []Point
		for _, p := range mysql32 {
			scaled = append(scaled, Point{p.Workers, p.Throughput * scale})
		}
		a, b := Analyze(mysql32), Analyze(scaled)
		near(t, "sigma", b.Fit.Sigma.Value, a.Fit.Sigma.Value, 1e-9)
		near(t, "sigma high", b.Fit.Sigma.High, a.Fit.Sigma.High, 1e-6)
		near(t, "kappa", b.Fit.Kappa.Value, a.Fit.Kappa.Value, 1e-9)
		near(t, "lambda", b.Fit.Lambda.Value, a.Fit.Lambda.Value*scale, 1e-9)
		near(t, "peak low", b.Fit.Peak.Low, a.Fit.Peak.Low, 1e-6)
	}
}

func TestEstimateInJSON(t *testing.T) {
	for _, e := range []Estimate{{1, 0.5, 2}, {1, 0.5, math.Inf(1)}} {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back Estimate
		if err := json.Unmarshal(text, &back); err != nil || back != e {
			t.Errorf("%v became %s and %v (%v)", e, text, back, err)
		}
	}
}
