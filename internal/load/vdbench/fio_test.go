package vdbench_test

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/vdbench"
	"github.com/braggdev/bragg/internal/testreq"
)

// fio runs the translated jobs: it does as many reads and writes, of as many bytes, at a rate that both can keep.
func TestAgreesWithFio(t *testing.T) {
	if testing.Short() {
		t.Skip("runs fio")
	}
	program := testreq.Program(t, "fio")
	w := workload(t, two+"wd=wd1,sd=sd1,rdpct=75,xfersize=(4k,50,8k,50)\nwd=wd2,sd=sd2,rdpct=0,seekpct=0,xfersize=16k\nrd=rd1,wd=wd*,iorate=800,elapsed=2,interval=1")
	in, err := vdbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	if err := in.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	sum := loadtest.Add(log.Intervals())

	jobs := in.(load.Teller).Outputs()[1].Text
	jobs = strings.NewReplacer("/dev/sdb", w.Devices[0].Path, "/dev/sdc", w.Devices[1].Path, "io_uring", "libaio").Replace(jobs)
	file := filepath.Join(t.TempDir(), "runs.fio")
	if err := os.WriteFile(file, []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), program, "--output-format=json", file).Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, text, jobs)
	}
	type counts struct {
		IOs   float64 `json:"total_ios"`
		Bytes float64 `json:"io_bytes"`
	}
	var report struct {
		Jobs []struct{ Read, Write counts }
	}
	if err := json.Unmarshal(text[strings.IndexByte(string(text), '{'):], &report); err != nil || len(report.Jobs) != 2 {
		t.Fatalf("%v: %s", err, text)
	}
	var theirs [2]counts
	for _, j := range report.Jobs {
		theirs[0].IOs, theirs[0].Bytes = theirs[0].IOs+j.Read.IOs, theirs[0].Bytes+j.Read.Bytes
		theirs[1].IOs, theirs[1].Bytes = theirs[1].IOs+j.Write.IOs, theirs[1].Bytes+j.Write.Bytes
	}
	for d, name := range []string{"reads", "writes"} {
		ours := &sum.Directions[interval.Direction(d)]
		n, m := float64(ours.Operations), theirs[d].IOs
		if math.Abs(n-m) > 6*math.Sqrt(n+m) {
			t.Errorf("%g %s, and fio did %g", n, name, m)
		}
		if mean, other := float64(ours.Bytes)/n, theirs[d].Bytes/m; math.Abs(mean-other) > 0.08*other {
			t.Errorf("%s of %.0f bytes, and those of fio have %.0f", name, mean, other)
		}
	}
}
