package ioengine_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/testreq"
)

// Every job file of the public X-Ray scenarios is planned natively, with what it touches inside its devices, whole and
// as a rehearsal.
func TestCorpusIsPlanned(t *testing.T) {
	root := testreq.Corpus(t, "xray")
	count := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".fio" {
			return err
		}
		count++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		for _, factor := range []float64{0, 0.0005} {
			w := load.Workload{Name: name, ConfigName: name, Config: string(text), Scale: load.Scale{Factor: factor, BlocksMin: 64}}
			for letter := 'b'; letter <= 'z'; letter++ {
				w.Devices = append(w.Devices, load.Device{Name: fmt.Sprintf("/dev/sd%c", letter), SizeBytes: 1 << 40})
			}
			checkPlan(t, w)
			w.Prefill = true
			checkPlan(t, w)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 50 {
		t.Errorf("only %d job files were found", count)
	}
}

func checkPlan(t *testing.T, w load.Workload) {
	t.Helper()
	plan, err := ioengine.New().Plan(w)
	if err != nil {
		t.Errorf("%s: %v", w.Name, err)
		return
	}
	if len(plan.Extents) == 0 || plan.Engine.Name != "native" {
		t.Errorf("%s: plan %+v", w.Name, plan)
	}
	for _, e := range plan.Extents {
		if e.Offset < 0 || e.Length < plan.BlockBytesMax || e.Offset+e.Length > 1<<40 {
			t.Errorf("%s: extent %+v, largest block %d", w.Name, e, plan.BlockBytesMax)
		}
	}
	if w.Prefill && plan.BytesWritten <= 0 {
		t.Errorf("%s: a prefill of %d bytes", w.Name, plan.BytesWritten)
	}
	seen := 0
	if err := ioengine.New().Operations(w, func(ioengine.Operation) bool { seen++; return seen%50 != 0 }); err != nil || seen == 0 {
		t.Errorf("%s: %d operations, %v", w.Name, seen, err)
	}
}
