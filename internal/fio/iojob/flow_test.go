package iojob_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iojob"
)

// flows are job files whose rows have fixed proportions; want are the shares of all operations, 0 for an unchecked row.
var flows = map[string]struct {
	text string
	want []float64
}{
	"two weights":         {"[a]\nflow=3\n[b]\nflow=1\n", []float64{.75, .25}},
	"three weights":       {"[a]\nflow=5\n[b]\nflow=3\n[c]\nflow=2\n", []float64{.5, .3, .2}},
	"clones":              {"[a]\nflow=1\nnumjobs=3\n[b]\nflow=3\n", []float64{1. / 6, 1. / 6, 1. / 6, .5}},
	"waits between looks": {"[a]\nflow=2\nflow_sleep=200\n[b]\nflow=1\nflow_sleep=100\n", []float64{2. / 3, 1. / 3}},
	"the slower one rules": {
		"[a]\nflow=2\n[b]\nflow=1\nrate_iops=2000\n", []float64{2. / 3, 1. / 3},
	},
}

// TestFlowsAsInFio compares shares, which a slow machine does not move.
func TestFlowsAsInFio(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for name, c := range flows {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text, file := parse(t, dir, "[global]\nioengine=psync\nfilename=@/f\nsize=1m\nrw=randread\ntime_based\nruntime=1\n"+c.text)
			report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := report.WriteJSON(&out, labels(file)); err != nil {
				t.Fatal(err)
			}
			checkShares(t, "bragg", []byte(out.String()), c.want)
			checkShares(t, "fio", fioAnyway(t, dir, text, "--output-format=json"), c.want)
		})
	}
}

func checkShares(t *testing.T, who string, text []byte, want []float64) {
	t.Helper()
	totals := totalsOf(t, text)
	if len(totals) != len(want) {
		t.Fatalf("%s: %d rows, want %d", who, len(totals), len(want))
	}
	sum := 0.
	for _, n := range totals {
		sum += n
	}
	for i, n := range totals {
		if share := n / sum; math.Abs(share-want[i]) > .03 {
			t.Errorf("%s: row %d did %.3f of %.0f operations, want %.3f", who, i, share, sum, want[i])
		}
	}
}

func totalsOf(t *testing.T, text []byte) (totals []float64) {
	t.Helper()
	var doc struct {
		Jobs []struct {
			Read struct {
				Total float64 `json:"total_ios"`
			} `json:"read"`
			Write struct {
				Total float64 `json:"total_ios"`
			} `json:"write"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, j := range doc.Jobs {
		totals = append(totals, j.Read.Total+j.Write.Total)
	}
	return totals
}

// A job that ends does not hold back the other, which does all of its work; a failed job does not either.
func TestFlowContinuesWithoutEndedJobs(t *testing.T) {
	for name, first := range map[string]string{
		"ended":  "[a]\nflow=1000\nnumber_ios=10\n",
		"failed": "[a]\nflow=1\nmax_latency=1ns\n",
		"later":  "[a]\nflow=1\nstartdelay=100ms\nnumber_ios=10\n",
	} {
		t.Run(name, func(t *testing.T) {
			text := "[global]\nioengine=psync\nfilename=@/f\nsize=4m\nrw=randread\n" + first + "[b]\nflow=1\nnumber_ios=1000\n"
			report := run(t, t.TempDir(), text)
			if got := report.Rows[1].Directions[0].Operations; got != 1000 {
				t.Errorf("%d operations, want all 1000", got)
			}
		})
	}
}

func TestFlowAlone(t *testing.T) {
	for text, warned := range map[string]bool{
		"[a]\nflow=2\n": true, "[a]\nflow=2\nnumjobs=2\n": false, "[a]\nflow=2\n[b]\nflow=1\n": false, "[a]\n[b]\n": false,
		"[a]\nflow=2\n[b]\nflow=1\nflow_id=1\n": true, "[a]\nflow=0\n": false, "[a]\nflow=2\n[b]\n": true,
	} {
		_, list := fiojob.Parse("t", text, fiojob.Options{})
		found := false
		for _, d := range list {
			found = found || d.Code == "flow-alone"
		}
		if list.HasErrors() || found != warned {
			t.Errorf("%q: %v", text, list)
		}
	}
}
