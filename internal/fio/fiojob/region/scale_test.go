package region_test

import (
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
)

func TestScaleRates(t *testing.T) {
	t.Parallel()
	text := "[a]\nrw=randrw\nsize=1m\nrate_iops=400,200\nrate_iops_min=40,20\n[b]\nrw=read\nsize=1m\nrate=1m,\n[c]\nrw=write\nsize=1m\n" +
		"[d]\nrw=write\nsize=1m\nrate_iops=1\n"
	file, issues := fiojob.Parse("x.fio", text, fiojob.Options{})
	if err := issues.Err(); err != nil {
		t.Fatal(err)
	}
	jobs := region.ScaleRates(file, 0.25).Jobs()
	if got := jobs[0].RateIOPS; got != [3]float64{100, 50, 50} {
		t.Errorf("a: %v operations a second", got)
	}
	if got := jobs[0].Control.RateIOPSMin; got != [3]int64{10, 5, 5} {
		t.Errorf("a: at least %v", got)
	}
	if got := jobs[1].Rate; got != [3]int64{256 << 10, 0, 0} {
		t.Errorf("b: %v bytes a second", got)
	}
	if jobs[2].Rate != [3]int64{} || jobs[2].RateIOPS != [3]float64{} {
		t.Errorf("c got a rate: %v %v", jobs[2].Rate, jobs[2].RateIOPS)
	}
	if got := jobs[3].RateIOPS[fiojob.Write]; got != 1 {
		t.Errorf("d: %v, want the least that is a rate", got)
	}
	// What is printed for fio reads back as the same rates.
	printed := region.ScaleRates(file, 0.25).Print(strings.Clone)
	again, issues := fiojob.Parse("y.fio", printed, fiojob.Options{})
	if err := issues.Err(); err != nil {
		t.Fatalf("%v in\n%s", err, printed)
	}
	for i, j := range again.Jobs() {
		if j.RateIOPS != jobs[i].RateIOPS || j.Rate != jobs[i].Rate || j.Control.RateIOPSMin != jobs[i].Control.RateIOPSMin {
			t.Errorf("%s reads back as %v %v %v", j.Name, j.RateIOPS, j.Rate, j.Control.RateIOPSMin)
		}
	}
	if region.ScaleRates(file, 1) != file {
		t.Error("a factor of 1 makes another file")
	}
}
