package iojob_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/testreq"
)

// lifecycles are job files in which jobs act on each other. Rates are 1,000 a second, so that counts are times; want are the
// operations of each row in hundreds, and -1 for a row whose count says nothing.
var lifecycles = map[string]struct {
	text string
	want []int
	errs []int
}{
	"exitall ends its group": {"[a]\nruntime=1\nexitall\n[b]\nruntime=5\n[c]\nnew_group\nruntime=2\n", []int{10, 10, 20}, []int{0, 0, 0}},
	"exit_what=stonewall": {
		"[a]\nruntime=1\nexitall\nexit_what=stonewall\n[b]\nnew_group\nruntime=5\n[c]\nstonewall\nruntime=1\n", []int{10, 10, 10}, []int{0, 0, 0},
	},
	"exit_what=all":                 {"[a]\nruntime=1\nexitall\nexit_what=all\n[b]\nruntime=5\n[c]\nstonewall\nruntime=1\n", []int{10, 10, 0}, []int{0, 0, 0}},
	"one error ends no other":       {slow + "[b]\nruntime=1\n", []int{-1, 10}, []int{110, 0}},
	"exitall_on_error":              {slow + "exitall_on_error\n[b]\nruntime=5\n", []int{-1, -1}, []int{110, 0}},
	"exitall_on_error without one":  {"[a]\nruntime=1\nexitall_on_error\n[b]\nruntime=2\n", []int{10, 20}, []int{0, 0}},
	"wait_for":                      {"[a]\nruntime=1\nnumjobs=2\n[b]\nwait_for=a\nnumber_ios=300\n[c]\nwait_for=b\nnumber_ios=200\n", []int{10, 10, 3, 2}, []int{0, 0, 0, 0}},
	"ended while it waits":          {"[a]\nruntime=3\n[b]\nwait_for=a\nruntime=1\n[c]\nruntime=1\nexitall\n", []int{10, 0, 10}, []int{0, 0, 0}},
	"ramp_time longer than runtime": {"[a]\nramp_time=2\nruntime=1\n", []int{10}, []int{0}},
	"loops and number_ios":          {"[a]\nsize=400k\nloops=2\n[b]\nnumber_ios=200\n", []int{2, 2}, []int{0, 0}},
}

// slow is a job that its first operation ends with an error.
const slow = "[a]\nruntime=5\nmax_latency=1ns\nioengine=psync\nfilename=@/slow\nsize=1m\n"

func TestJobsActOnEachOtherAsInFio(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for name, c := range lifecycles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if strings.Contains(c.text, "@") {
				if err := os.WriteFile(filepath.Join(dir, "slow"), make([]byte, 1<<20), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			text := "[global]\nioengine=null\nsize=1g\nrate_iops=1000\n" + c.text
			text, file := parse(t, dir, text)
			report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := report.WriteJSON(&out, labels(file)); err != nil {
				t.Fatal(err)
			}
			checkRows(t, "bragg", []byte(out.String()), c.want, c.errs)
			if strings.Contains(name, "while it waits") {
				return // fio 3.33 starts the job that waits, for an instant
			}
			checkRows(t, "fio", fioAnyway(t, dir, text, "--output-format=json"), c.want, c.errs)
		})
	}
}

func checkRows(t *testing.T, who string, text []byte, want, errs []int) {
	t.Helper()
	var doc struct {
		Jobs []struct {
			Name  string `json:"jobname"`
			Error int    `json:"error"`
			Read  struct {
				Total int `json:"total_ios"`
			} `json:"read"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%s: %v\n%s", who, err, text)
	}
	if len(doc.Jobs) != len(want) {
		t.Fatalf("%s: %d rows, want %d", who, len(doc.Jobs), len(want))
	}
	for i, j := range doc.Jobs {
		if j.Error != errs[i] {
			t.Errorf("%s: job %q ends with error %d, want %d", who, j.Name, j.Error, errs[i])
		}
		// A machine with other work stops late, never early.
		if low := 100*want[i] - 60; want[i] >= 0 && (j.Read.Total < low || want[i] == 0 && j.Read.Total > 0 || j.Read.Total > 2*100*want[i]+100) {
			t.Errorf("%s: job %q did %d operations, want about %d", who, j.Name, j.Read.Total, 100*want[i])
		}
	}
}

func TestWaitsAreChecked(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"[a]\nsize=1m\nwait_for=b\n[b]\nsize=1m\n", "[a]\nsize=1m\nwait_for=a\n", "[a]\nsize=1m\nwait_for=x\n"} {
		_, file := parse(t, t.TempDir(), "[global]\nioengine=null\n"+text)
		_, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
		var faults *diag.ListError
		if !errors.As(err, &faults) || faults.List[0].Code != "wait-for" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Bounds that are not kept end a job with fio's error numbers.
func TestBoundsThatAreNotKept(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	for options, want := range map[string]syscall.Errno{
		"max_latency=1ns":                          syscall.ETIMEDOUT,
		"rate_iops_min=1000000000\nrate_cycle=200": syscall.EIO,
		"rate_min=9000g":                           syscall.EIO,
		"rate_iops_min=1\nmax_latency=1h":          0,
	} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text, file := parse(t, dir, "[a]\nfilename=@/f\nsize=1m\nrw=randread\ntime_based\nruntime=4\n"+options+"\n")
			report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got syscall.Errno
			if errors.As(report.Rows[0].Err, &got); got != want {
				t.Errorf("%q: %v, want %v", options, report.Rows[0].Err, want)
			}
			var doc struct{ Jobs []struct{ Error int } }
			if err := json.Unmarshal(fioAnyway(t, dir, text, "--output-format=json"), &doc); err != nil || doc.Jobs[0].Error != int(want) {
				t.Errorf("%q: fio ends with %+v, %v, want %d", options, doc, err, int(want))
			}
		})
	}
}

// The search for a queue depth: the null engine meets every target at any depth, and nothing meets a nanosecond.
func TestLatencyTarget(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	for _, c := range []struct {
		options string
		depth   int
		met     bool
	}{
		{"ioengine=null\nlatency_target=10s\nlatency_window=50ms", 16, true},
		{"ioengine=libaio\nlatency_target=1ns\nlatency_window=50ms\nlatency_percentile=50", 1, false},
		{"ioengine=null\nlatency_target=10s\nlatency_window=50ms\nlatency_run=1", 16, true},
	} {
		t.Run(c.options, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text, file := parse(t, dir, "[a]\nfilename=@/f\nsize=1m\nrw=randread\niodepth=16\ntime_based\nruntime=2\n"+c.options+"\n")
			report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
			if err != nil {
				t.Fatal(err)
			}
			row := report.Rows[0]
			if row.Depth == nil || row.Depth.Depth != c.depth || row.Depth.Met != c.met || row.Directions[0].Operations == 0 {
				t.Errorf("%q: %+v, %d operations", c.options, row.Depth, row.Directions[0].Operations)
			}
			whole := c.met && !strings.Contains(c.options, "latency_run=1")
			if whole && row.Runtime > 1500*time.Millisecond {
				t.Errorf("%q: what was done during the search counts: %v", c.options, row.Runtime)
			}
			var doc struct {
				Jobs []struct {
					Depth int `json:"latency_depth"`
				}
			}
			if err := json.Unmarshal(fioAnyway(t, dir, text, "--output-format=json"), &doc); err != nil || doc.Jobs[0].Depth != c.depth {
				t.Errorf("%q: fio finds %+v, %v", c.options, doc, err)
			}
		})
	}
}

// Public job files that act on each other do what fio does with them, made short.
func TestPublicFilesOfLifecycles(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	corpus := testreq.Corpus(t, "fio")
	for name, c := range map[string]struct {
		shorter []string
		same    bool // both do exactly the same
	}{
		"exitwhat.fio": {[]string{"/tmp/test", "@/f", "filesize=1G", "filesize=16m", "number_ios=1000", "number_ios=300"}, false},
		"waitfor.fio":  {[]string{"/tmp/data", "@/f", "filesize=128m", "filesize=8m"}, true},
		"steadystate.fio": {[]string{"5m", "8s", "ss_dur=30s", "ss_dur=2s", "ss_dur=10s", "ss_dur=2s", "ss_ramp=10s", "ss_ramp=1s",
			"ss_ramp=5s", "ss_ramp=1s", "iops:10%", "iops:90%", "bw_slope:1%", "bw_slope:90%"}, false},
		"latency-profile.fio": {[]string{"/dev/sda", "@/f", "latency_target=500000", "latency_target=10s", "latency_window=5000000",
			"latency_window=100ms", "iodepth=128", "iodepth=8\ntime_based\nruntime=5\nsize=1m"}, false},
	} {
		text, err := os.ReadFile(filepath.Join(corpus, "axboe+fio", name))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 16<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		short, file := parse(t, dir, strings.NewReplacer(c.shorter...).Replace(string(text)))
		report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var out strings.Builder
		if err := report.WriteJSON(&out, labels(file)); err != nil {
			t.Fatal(err)
		}
		ours, theirs := progressOf(t, []byte(out.String())), progressOf(t, fioAnyway(t, dir, short, "--output-format=json"))
		if len(ours) != len(theirs) {
			t.Errorf("%s: %d rows, fio has %d", name, len(ours), len(theirs))
			continue
		}
		for i := range ours {
			o, f := ours[i], theirs[i]
			ran := (o.Read.Total+o.Write.Total > 0) == (f.Read.Total+f.Write.Total > 0)
			if o.Name != f.Name || o.Error != f.Error || !ran || name == "latency-profile.fio" && o.Depth != f.Depth ||
				c.same && (o.Read != f.Read || o.Write != f.Write) || (o.Steady == nil) != (f.Steady == nil) ||
				o.Steady != nil && *o.Steady != *f.Steady {
				t.Errorf("%s: row %d is %+v, fio's %+v", name, i, o, f)
			}
		}
	}
}

type progress struct {
	Name        string `json:"jobname"`
	Error       int    `json:"error"`
	Read, Write struct {
		Total int `json:"total_ios"`
	}
	Depth  int `json:"latency_depth"`
	Steady *struct {
		Criterion string `json:"ss"`
		Duration  int    `json:"duration"`
		Attained  int    `json:"attained"`
	} `json:"steadystate"`
}

func progressOf(t *testing.T, text []byte) []progress {
	t.Helper()
	var doc struct{ Jobs []progress }
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return doc.Jobs
}

// Errors that a job outlives are counted as fio counts them.
func TestIgnoredErrors(t *testing.T) {
	testreq.Root(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		testreq.Skip(t, "no tmpfs: "+err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	for options, fails := range map[string]bool{"ignore_error=,ENOSPC": false, "ignore_error=,28": false, "ignore_error=ENOSPC": true, "": true} {
		text, file := parse(t, dir, "[a]\nfilename=@/f\nsize=2m\nbs=64k\nrw=write\nfallocate=none\n"+options+"\n")
		var told []string
		report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Say: func(s string) { told = append(told, s) }})
		if err != nil {
			t.Fatal(err)
		}
		if got := report.Rows[0].Err != nil; got != fails {
			t.Errorf("%q: error %v", options, report.Rows[0].Err)
		}
		var out strings.Builder
		if err := report.WriteJSON(&out, labels(file)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "f")); err != nil {
			t.Fatal(err)
		}
		scratch := t.TempDir()
		fio := fioAnyway(t, scratch, strings.ReplaceAll(text, "\n\n", "\n"), "--output-format=json")
		if err := os.Remove(filepath.Join(dir, "f")); err != nil {
			t.Fatal(err)
		}
		if ours, theirs := errorsOf(t, []byte(out.String())), errorsOf(t, fio); ours != theirs && options != "ignore_error=ENOSPC" {
			t.Errorf("%q: error, total_err and first_error are %v, fio's %v", options, ours, theirs)
		}
	}
}

func errorsOf(t *testing.T, text []byte) [3]int {
	t.Helper()
	var doc struct {
		Jobs []struct {
			Error int `json:"error"`
			Total int `json:"total_err"`
			First int `json:"first_error"`
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return [3]int{doc.Jobs[0].Error, doc.Jobs[0].Total, doc.Jobs[0].First}
}

// A job that ends before its window is full has the arrays and means that fio prints for it.
func TestSteadyArrays(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	text, file := parse(t, t.TempDir(), "[a]\nfilename=@/f\nsize=1m\nrw=read\nrate_iops=100\ntime_based\nruntime=3\nsteadystate=iops:1\nsteadystate_duration=5\n")
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report.WriteJSON(&out, labels(file)); err != nil {
		t.Fatal(err)
	}
	for who, document := range map[string][]byte{"ours": []byte(out.String()), "fio": fioAnyway(t, t.TempDir(), text, "--output-format=json")} {
		var doc struct {
			Jobs []struct {
				Steady struct {
					Data struct {
						BandwidthMean uint64 `json:"bw_mean"`
						IOPSMean      uint64 `json:"iops_mean"`
						IOPS, BW      []uint64
					}
				} `json:"steadystate"`
			}
		}
		if err := json.Unmarshal(document, &doc); err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		d := doc.Jobs[0].Steady.Data
		var operations, bytes uint64
		for i := range d.IOPS {
			operations, bytes = operations+d.IOPS[i], bytes+d.BW[i]
		}
		if len(d.IOPS) != 5 || len(d.BW) != 5 || d.IOPS[0] == 0 || d.BW[0] < 4000*d.IOPS[0] || d.IOPS[4] != 0 || d.BW[4] != 0 ||
			d.IOPSMean != operations/5 || d.BandwidthMean != bytes/5 {
			t.Errorf("%s: %+v", who, d)
		}
	}
}
