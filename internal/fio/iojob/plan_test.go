package iojob_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/iojob"
)

// planned is a line of a plan.
type planned struct {
	Job    string   `json:"job"`
	Clone  int      `json:"clone"`
	File   string   `json:"file"`
	Op     string   `json:"op"`
	Offset int64    `json:"offset"`
	Length int64    `json:"length"`
	Micros *float64 `json:"time_us"`
	End    *struct {
		Phase      int   `json:"phase"`
		Operations int64 `json:"operations"`
		Bytes      int64 `json:"bytes"`
		Cut        bool  `json:"cut"`
	} `json:"end"`
}

func plan(t *testing.T, dir, text string, most int64) []planned {
	t.Helper()
	_, file := parse(t, dir, text)
	var out bytes.Buffer
	if err := iojob.WritePlan(&out, file.Jobs(), iojob.Options{Folder: dir}, most); err != nil {
		t.Fatal(err)
	}
	var all []planned
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	for d.More() {
		var p planned
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// A plan has the operations of the run, in their order; the log of the run says what was done.
func TestPlanIsWhatIsDone(t *testing.T) {
	for _, options := range []string{
		"rw=randrw\nbsrange=4k-16k\nrwmixread=30\n", "rw=write\nbs=8k\noffset=64k\n", "rw=randread\nrandom_distribution=zipf:1.2\nnorandommap\n",
		"rw=rw\nbssplit=4k/50:8k/50\nfsync=5\n",
	} {
		dir := t.TempDir()
		text := "[j]\nfilename=file\nsize=512k\nioengine=psync\nwrite_iops_log=x\nlog_offset=1\n" + options
		want := plan(t, dir, text, 0)
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("a plan made %v, %v", entries, err)
		}
		runIn(t, dir, text)
		done := logLines(t, filepath.Join(dir, "x_iops.1.log"))
		i, bytes := 0, int64(0)
		for _, p := range want {
			if p.Op != "read" && p.Op != "write" {
				continue
			}
			bytes += p.Length
			direction := map[string]int64{"read": 0, "write": 1}[p.Op]
			if i >= len(done) || done[i][2] != direction || done[i][3] != p.Length || done[i][4] != p.Offset {
				t.Fatalf("%q: operation %d is planned as %+v, done were %d", options, i, p, len(done))
			}
			i++
		}
		end := want[len(want)-1].End
		if i != len(done) || end == nil || end.Cut || end.Operations != int64(len(want)-1) || end.Bytes != bytes {
			t.Errorf("%q: %d planned, %d done, end %+v", options, i, len(done), end)
		}
	}
}

// Operations with a rate have their time; a job without an end is cut, and says so.
func TestPlanHasTimesAndAnEnd(t *testing.T) {
	lines := plan(t, t.TempDir(), "[rate]\nrate_iops=1000\nruntime=2\ntime_based\nsize=1m\n[endless]\nstonewall\nsize=1m\ntime_based\nruntime=5\n", 3000)
	var rated, endless int
	for _, p := range lines {
		switch {
		case p.End != nil && (p.End.Cut != (p.Job == "endless") || (p.End.Phase == 1) != (p.Job == "endless")):
			t.Errorf("end of %s: %+v", p.Job, *p.End)
		case p.End != nil:
		case p.Job == "rate":
			if want := float64(rated) * 1000; p.Micros == nil || math.Abs(*p.Micros-want) > 1 {
				t.Fatalf("operation %d is due at %v µs, want %v", rated, p.Micros, want)
			}
			rated++
		default:
			if p.Micros != nil {
				t.Fatalf("an operation without a rate is due at %v", *p.Micros)
			}
			endless++
		}
	}
	if rated != 2000 || endless != 3000 {
		t.Errorf("%d with a rate, %d without", rated, endless)
	}
}

type fullWriter struct{}

var errFull = errors.New("full")

func (fullWriter) Write([]byte) (int, error) { return 0, errFull }

func TestPlanThatCannotBeWritten(t *testing.T) {
	_, file := parse(t, t.TempDir(), "[j]\nsize=1g\n")
	if err := iojob.WritePlan(fullWriter{}, file.Jobs(), iojob.Options{Folder: t.TempDir()}, 0); !errors.Is(err, errFull) {
		t.Errorf("the error is %v", err)
	}
	_, file = parse(t, t.TempDir(), "[j]\nrw=read\n")
	if err := iojob.WritePlan(fullWriter{}, file.Jobs(), iojob.Options{Folder: t.TempDir()}, 0); err == nil || !strings.Contains(err.Error(), "size") {
		t.Errorf("the error is %v", err)
	}
}
