package vdbench_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/vdbench"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/unit"
)

const deviceBytes = 64 * unit.MiB

// workload is a load of a parameter file on two devices.
func workload(t testing.TB, text string) load.Workload {
	t.Helper()
	w := load.Workload{Name: "W", Group: "G", VM: "G-0001", Instance: 1, Generator: vdbench.Name, ConfigName: "test.parm", Config: text, Seed: 7}
	for _, name := range []string{"/dev/sdb", "/dev/sdc"} {
		path := filepath.Join(t.TempDir(), filepath.Base(name))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, deviceBytes); err != nil {
			t.Fatal(err)
		}
		w.Devices = append(w.Devices, load.Device{Name: name, Path: path, SizeBytes: deviceBytes})
	}
	return w
}

const two = "sd=default,openflags=o_direct,threads=4\nsd=sd1,lun=/dev/sdb\nsd=sd2,lun=/dev/sdc\n"

func TestContract(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, text := range map[string]string{
		"closed": two + "wd=wd1,sd=sd*\nrd=rd1,wd=wd1,iorate=max,elapsed=100h\n",
		"open":   two + "wd=wd1,sd=sd1,xfersize=8k,seekpct=0\nrd=rd1,wd=wd1,iorate=2000,elapsed=100h\n",
	} {
		t.Run(name, func(t *testing.T) {
			loadtest.RunAny(t, loadtest.Subject{Generator: vdbench.Generator{}, Endless: func(t testing.TB) load.Workload { return workload(t, text) }})
		})
	}
}

// drawn are the operations that the compiled jobs draw.
type operation struct {
	direction    interval.Direction
	offset, size int64
}

// draw takes operations of a job as the engine does: directions in the mix of a closed loop.
func draw(j *program.Job, n int) (all []operation) {
	q := program.NewSequence(&j.Clones[0], j)
	for range n {
		d := q.Mixed(&[interval.DirectionCount]bool{})
		at, offset, size := q.Next(d)
		if at < 0 {
			break
		}
		all = append(all, operation{interval.Direction(d), offset, size})
	}
	return all
}

// within reports whether a count out of n is what a probability allows; five sigma.
func within(count, n int, p float64) bool {
	return math.Abs(float64(count)-float64(n)*p) <= 5*math.Sqrt(float64(n)*p*(1-p))+1
}

// Places, sizes and directions are those that vdbench documents.
func TestPlaces(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		name, wd string
		check    func(t *testing.T, all []operation)
	}{
		{"random", "xfersize=8k", func(t *testing.T, all []operation) {
			for _, o := range all {
				if o.offset%8192 != 0 || o.offset == 0 || o.direction != interval.Read {
					t.Fatalf("%+v: block zero of a device is never used", o)
				}
			}
		}},
		{"mix", "xfersize=(8k,67,24k,33),rdpct=70", func(t *testing.T, all []operation) {
			small, reads, places := 0, 0, map[int64]bool{}
			for _, o := range all {
				if o.offset%o.size != 0 || o.offset == 0 || o.offset+o.size > deviceBytes {
					t.Fatalf("%+v is not aligned to its own size, or block zero, or beyond the end", o)
				}
				places[o.offset] = true
				if o.size == 8192 {
					small++
				}
				if o.direction == interval.Read {
					reads++
				}
			}
			if !within(small, n, 0.67) || !within(reads, n, 0.7) || !places[8192] && !places[24576] {
				t.Errorf("%d of %d small, %d reads", small, n, reads)
			}
		}},
		{"sequential mix", "xfersize=32k,rdpct=70,seekpct=0", func(t *testing.T, all []operation) {
			at := int64(32768)
			for i, o := range all {
				if o.offset != at {
					t.Fatalf("operation %d at %d, want %d: reads and writes share one sequence", i, o.offset, at)
				}
				if at += o.size; at == deviceBytes {
					at = 32768
				}
			}
		}},
		{"seekpct", "xfersize=4k,seekpct=20", func(t *testing.T, all []operation) {
			jumps := 0
			for i := 1; i < len(all); i++ {
				if all[i].offset != all[i-1].offset+4096 {
					jumps++
				}
			}
			if !within(jumps, n, 0.2) {
				t.Errorf("%d random seeks of %d", jumps, n)
			}
		}},
		{"range", "xfersize=4k,range=(25,50)", func(t *testing.T, all []operation) {
			low, high := int64(math.MaxInt64), int64(0)
			for _, o := range all {
				low, high = min(low, o.offset), max(high, o.offset+o.size)
			}
			if low != deviceBytes/4 || high != deviceBytes/2 {
				t.Errorf("from %d to %d", low, high)
			}
		}},
		{"eof", "xfersize=1m,seekpct=eof,rdpct=0", func(t *testing.T, all []operation) {
			if len(all) != 63 || all[62].offset != 63*unit.MiB {
				t.Errorf("%d operations", len(all))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, programs, _, err := vdbench.Compiled(workload(t, two+"wd=wd1,sd=sd1,"+c.wd+"\nrd=rd1,wd=wd1,iorate=max"))
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, draw(&programs[0].Jobs[0], n))
		})
	}
}

// Loops are nested in the order of the parameters, the rates are the innermost one.
func TestRuns(t *testing.T) {
	names, programs, jobs, err := vdbench.Compiled(workload(t, two+"wd=wd1,sd=sd1,skew=75,rdpct=60\nwd=wd2,sd=sd2,rdpct=0\nrd=rd1,wd=wd*,forthreads=(1-4,d),xfersize=(4k,8k),iorate=(100,max),elapsed=20,warmup=10,interval=5"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 12 || names[0] != "RD=rd1; I/O rate: 100; elapsed=20 warmup=10; For loops: threads=1 xfersize=4k iorate=100" ||
		names[11] != "RD=rd1; I/O rate: Controlled MAX; elapsed=20 warmup=10; For loops: threads=4 xfersize=8k iorate=max" {
		t.Errorf("%q", names)
	}
	first := jobs[0]
	if rate := first[0].RateIOPS; math.Abs(rate[0]-45) > 1e-9 || math.Abs(rate[1]-30) > 1e-9 || first[1].RateIOPS[1] != 25 || first[0].RateProcess != "poisson" {
		t.Errorf("rates %v and %v", rate, first[1].RateIOPS)
	}
	if first[0].RampTime != 10*time.Second || first[0].Runtime != 20*time.Second || !first[0].Direct || first[0].IODepth != 1 {
		t.Errorf("job %+v", first[0])
	}
	if last := jobs[11]; last[0].Control.Flow != 3*last[1].Control.Flow || last[0].RateIOPS[0] != 0 || last[0].IODepth != 4 || last[0].BlockSize[0] != 8192 {
		t.Errorf("weights %d and %d", last[0].Control.Flow, last[1].Control.Flow)
	}
	if e := programs[0].Extents(); e[0].Offset != 4096 || e[0].Length != deviceBytes-4096 {
		t.Errorf("extents %+v", e)
	}
}

// What the native engine cannot do exactly is refused, at its place.
func TestRefused(t *testing.T) {
	const rd = "\nrd=rd1,wd=wd1,iorate=max"
	for text, want := range map[string]string{
		"wd=wd1,sd=sd1,hotband=(10,20)" + rd:                            "4:15",
		"wd=wd1,sd=sd1,rhpct=50" + rd:                                   "4:15",
		"wd=wd1,sd=sd1,stride=(1m,2m)" + rd:                             "4:15",
		"wd=wd1,sd=sd1,seekpct=seqnz" + rd:                              "4:23",
		"wd=wd1,sd=sd1,xfersize=(4k,64k,4k)" + rd:                       "4:15",
		"wd=wd1,sd=sd1,rdpct=33.3" + rd:                                 "4:21",
		"wd=wd1,sd=sd1\nwd=wd2,sd=sd1\nrd=rd1,wd=wd*,iorate=max":        "5:4",
		"wd=wd1,sd=sd1,openflags=(o_direct,0x1000)" + rd:                "4:35",
		"wd=wd1,sd=sd1,range=(90,110)" + rd:                             "4:15",
		"wd=wd1,sd=sd1" + rd + ",distribution=uniform":                  "5:39",
		"wd=wd1,sd=sd1,rdpct=50\nrd=rd1,wd=wd1,iorate=5,distribution=d": "5:37",
		"wd=wd1,sd=sd1" + rd + ",startcmd=reboot":                       "5:26",
		"wd=wd1,sd=sd1\nrd=rd1,sd=single,iorate=max":                    "5:11",
	} {
		_, _, _, err := vdbench.Compiled(workload(t, two+text))
		var list *diag.ListError
		if !errors.As(err, &list) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d := list.List[0]; d.Code != "not-translated" || fmt.Sprintf("%d:%d", d.Pos.Line, d.Pos.Column) != want {
			t.Errorf("%s: %v at %v, want %s", text, d.Message, d.Pos, want)
		}
	}
	for text, part := range map[string]string{
		"sd=sd1,lun=/dev/sdz,openflags=o_direct\nwd=wd1,sd=sd1" + rd:              "not a disk of the VM",
		"sd=sd1,lun=/dev/sdb\nwd=wd1,sd=sd1" + rd:                                 "o_direct",
		"compratio=3\nsd=sd1,lun=/dev/sdb,openflags=o_direct\nwd=wd1,sd=sd1" + rd: "66.67 %",
		"dedupratio=4,dedupunit=4k\n" + two + "wd=wd1,sd=sd1,xfersize=32k" + rd:   "whole blocks",
		"hd=a\nhd=b\n" + two + "wd=wd1,sd=sd1" + rd:                               "hd=b",
		two + "wd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=0.":                            "above 0",
		two + "wd=wd1,sd=sd1,xfersize=0" + rd:                                     "0 bytes",
		"validate=yes\n" + two + "wd=wd1,sd=sd1" + rd:                             "validate",
	} {
		if _, _, _, err := vdbench.Compiled(workload(t, text)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %s", text, err, part)
		}
	}
	w := workload(t, two+"wd=wd1,sd=sd1"+rd)
	w.Options = map[string]string{"theads": "1"}
	if _, err := (vdbench.Generator{}).Plan(w); err == nil {
		t.Error("an unknown option is accepted")
	}
}

// The public files are planned, or refused for a reason.
func TestCorpus(t *testing.T) {
	folder := testreq.Corpus(t, "vdbench")
	for name, want := range map[string]string{
		"iul1an+vdbench-tests/tests/distributed/100-Reads.vdb":    "another one",
		"cloudbytestorage+devops/examples/raw/multi_host":         "hd=240b",
		"cloudbytestorage+devops/examples/raw/random_write_curve": "not a disk of the VM",
		"mcarpendale+vdbench/run_32K_70R_lin.vdb":                 "dedupunit",
	} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		w := workload(t, string(text))
		w.Devices[1].Name = "/dev/sdc1"
		w.Options = map[string]string{}
		for _, v := range []string{"host1", "host2", "anchor1", "anchor2", "vdbench_path"} {
			if strings.Contains(w.Config, "$"+v) {
				w.Options["var_"+v] = "/mnt"
			}
		}
		plan, err := vdbench.Generator{}.Plan(w)
		var list *diag.ListError
		if !errors.As(err, &list) || !slices.ContainsFunc(list.List, func(d diag.Diagnostic) bool { return strings.Contains(d.Message, want) }) || len(plan.Issues) == 0 {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// run runs a load to its end.
func run(t *testing.T, w load.Workload) (loadtest.Sum, []interval.Interval, string) {
	t.Helper()
	in, err := vdbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	if err := in.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	all := log.Intervals()
	loadtest.CheckIntervals(t, w, all)
	outputs := in.(load.Teller).Outputs()
	for _, o := range outputs {
		if !o.Valid() {
			t.Errorf("output %q of %d bytes", o.Name, len(o.Text))
		}
	}
	return loadtest.Add(all), all, outputs[0].Text
}

// A rate, its directions, sizes and skew are what the file asks for.
func TestNumbers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	w := workload(t, two+"wd=wd1,sd=sd1,skew=80,rdpct=70,xfersize=(4k,75,8k,25)\nwd=wd2,sd=sd2,rdpct=0,xfersize=16k\nrd=rd1,wd=wd*,iorate=1000,elapsed=3,interval=1")
	sum, all, text := run(t, w)
	total := sum.Totals()
	due := int(sum.Due)
	if due < 3000-5*55 || due > 3000+5*55 || uint64(due) != total.Operations+sum.NotIssued {
		t.Errorf("%d due at 1000 per second for 3 s, %d done, %d not issued", due, total.Operations, sum.NotIssued)
	}
	first := 0
	var bytes uint64
	for i := range all {
		for _, c := range all[i].Devices["/dev/sdb"] {
			first, bytes = first+int(c.Operations), bytes+c.Bytes
		}
	}
	reads := int(sum.Directions[interval.Read].Operations)
	large := int(bytes/4096) - first
	if !within(first, int(total.Operations), 0.8) || !within(reads, first, 0.7) || !within(large, first, 0.25) {
		t.Errorf("%d operations: %d of wd1, %d of these read, %d have 8k", total.Operations, first, reads, large)
	}
	if !strings.Contains(text, "RD=rd1; I/O rate: 1000; elapsed=3; For loops: None") {
		t.Error(text)
	}
}

// Runs follow each other without a gap, pauses included; a curve uses the maximum that it has measured.
func TestSequence(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	w := workload(t, two+"wd=wd1,sd=sd1,xfersize=4k\nrd=rd1,wd=wd1,iorate=curve,curve=(1,2),elapsed=1.2,interval=0.4,pause=0.3\nrd=rd2,wd=wd1,iorate=max,maxdata=1m,elapsed=100h,interval=0.2,warmup=0.2")
	w.IntervalLength = 100 * time.Millisecond
	_, all, text := run(t, w)
	perRun := map[int]uint64{}
	var paused time.Duration
	for i := range all {
		if math.IsNaN(all[i].Gauges[0]) {
			if paused += time.Duration(all[i].LengthNanos); all[i].Directions[0].Operations > 0 {
				t.Errorf("operations in a pause: %+v", all[i])
			}
			continue
		}
		n := int(all[i].Gauges[0])
		for d := range all[i].Directions {
			perRun[n] += all[i].Directions[d].Operations
		}
	}
	if len(perRun) != 4 || perRun[4] < 256 || paused < 2*300*time.Millisecond {
		t.Errorf("operations by run: %v, paused for %s\n%s", perRun, paused, text)
	}
	for n, percent := range map[int]float64{2: 1, 3: 2} {
		rate := float64(perRun[1]) / 1.2 * percent / 100
		if got := float64(perRun[n]) / 1.2; got < 0.5*rate-10*math.Sqrt(rate) || got > 1.5*rate+110+10*math.Sqrt(rate) {
			t.Errorf("run %d: %.0f per second, want %g %% of %.0f\n%s", n, got, percent, rate/percent*100, text)
		}
	}
	if lines := strings.Count(text, "\n"); lines != 5 {
		t.Errorf("%d lines\n%s", lines, text)
	}
}

// Several runs are stages of the load, and those that differ in their rates only are points of one curve.
func TestStages(t *testing.T) {
	w := workload(t, two+"wd=wd1,sd=sd1,xfersize=4k\nrd=rd1,wd=wd1,iorate=curve,curve=(10,50),elapsed=60,interval=5\n"+
		"rd=rd2,wd=wd1,iorate=(max,100),elapsed=60,warmup=20,interval=1,forthreads=(1,2)\n")
	p, err := vdbench.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	if want := []interval.Stage{
		{Name: "rd1, maximum", Curve: 1, SkipNanos: 5e9}, {Name: "rd1, 10 % of the maximum", Curve: 1, Rate: 10, SkipNanos: 5e9}, {Name: "rd1, 50 % of the maximum", Curve: 1, Rate: 50, SkipNanos: 5e9},
		{Name: "rd2 threads=1, maximum", Curve: 2, SkipNanos: 20e9}, {Name: "rd2 threads=1, 100/s", Curve: 2, Rate: 100, SkipNanos: 20e9},
		{Name: "rd2 threads=2, maximum", Curve: 3, SkipNanos: 20e9}, {Name: "rd2 threads=2, 100/s", Curve: 3, Rate: 100, SkipNanos: 20e9},
	}; !slices.Equal(p.Engine.Stages, want) {
		t.Errorf("%+v", p.Engine.Stages)
	}
	w.Config = two + "wd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max\n"
	if p, err = (vdbench.Generator{}).Plan(w); err != nil || p.Engine.Stages != nil {
		t.Errorf("one run has stages %+v, %v", p.Engine.Stages, err)
	}
	w.Config = two + "wd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max,warmup=20\n"
	if p, err = (vdbench.Generator{}).Plan(w); err != nil || len(p.Engine.Stages) != 1 || p.Engine.Stages[0].SkipNanos != 20e9 {
		t.Errorf("a run with a warm-up has stages %+v, %v", p.Engine.Stages, err)
	}
}

// The runtime of a load ends it wherever it is, and a cancelled one ends in a pause too.
func TestEndsEarly(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	w := workload(t, two+"wd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max,elapsed=0.4,forthreads=(1,2,4),pause=0.2")
	w.Runtime = 700 * time.Millisecond
	sum, _, _ := run(t, w)
	if sum.LengthNanos < int64(w.Runtime)-1e6 {
		t.Errorf("%v", time.Duration(sum.LengthNanos))
	}
	w = workload(t, two+"wd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=(max,max),elapsed=0.2,pause=100h")
	in, err := vdbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var log loadtest.Log
	if err := in.Run(ctx, &log); err != nil {
		t.Error(err)
	}
	loadtest.CheckIntervals(t, w, log.Intervals())
}

// A prefill writes what the runs use, once.
func TestPrefill(t *testing.T) {
	w := workload(t, two+"wd=wd1,sd=sd1,range=(25,50)\nwd=wd2,sd=sd2\nrd=rd1,wd=wd*,iorate=(max,max),elapsed=100h")
	w.Prefill = true
	plan, err := vdbench.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	in, err := vdbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	if err := in.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	loadtest.CheckIntervals(t, w, log.Intervals())
	bytes := loadtest.Add(log.Intervals()).Directions[interval.Write].Bytes
	if want := uint64(deviceBytes/4 + deviceBytes - 4096); bytes != want || plan.BytesWritten != int64(want) {
		t.Errorf("%d bytes written, %d planned, want %d", bytes, plan.BytesWritten, want)
	}
}
