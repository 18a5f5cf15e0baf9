package mlperf_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/mlperf"
)

// sharing are loads of several VMs with one data set, whose files are not written yet.
func sharing(t *testing.T, vms int, options map[string]string) (list []load.Workload, files string) {
	t.Helper()
	base := t.TempDir()
	t.Setenv("BRAGG_FOLDER_NAS", base)
	for i := range vms {
		w := small(t, options)
		w.Options["dataset"], w.Options["folder"] = "shared", "nas"
		w.VM, w.Ordinal, w.Remote = fmt.Sprintf("GPU-%04d", i+1), i, load.Remote{VMs: vms, Rank: i}
		list = append(list, w)
	}
	return list, filepath.Join(base, "mlperf_storage-GPU-shared", "train", "*", "*.bin")
}

// VMs that write their parts at the same time make one data set. In every epoch each sample of it is read once by one of the VMs, in an
// order of all files. Truth is the files themselves: their sizes differ.
func TestSharedDataSet(t *testing.T) {
	const vms, files, epochs = 2, 48, 3
	list, pattern := sharing(t, vms, map[string]string{"files": fmt.Sprint(files), "epochs": fmt.Sprint(epochs)})
	var all sync.WaitGroup
	for _, w := range list {
		all.Go(func() { filled(t, w) })
	}
	all.Wait()
	found, _ := filepath.Glob(pattern)
	var bytes uint64
	var written [vms]uint64
	for i, path := range found {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		bytes += uint64(info.Size())
		written[i%vms] += uint64(info.Size())
	}
	if len(found) != files {
		t.Fatalf("%d files", len(found))
	}
	var read [vms]uint64
	got := train(t, together(t, list))
	for i, o := range got {
		if o.err != nil {
			t.Fatal(o.err)
		}
		d := o.sum.Directions[0]
		if read[i] = d.Bytes; d.Operations != files/vms*epochs || strings.Count(o.text, ": 6 steps in ") != epochs {
			t.Errorf("vm %d: %d samples\n%s", i, d.Operations, o.text)
		}
	}
	if read[0]+read[1] != epochs*bytes {
		t.Errorf("the VMs read %d bytes, and %d epochs have %d", read, epochs, epochs*bytes)
	}
	for i := range vms {
		if read[i] == epochs*written[i] {
			t.Errorf("vm %d read what it wrote", i)
		}
	}
}

// A VM that does not see the parts of the others does not train, and a prefill keeps out of files that are read.
func TestSharedDataSetIsGuarded(t *testing.T) {
	list, pattern := sharing(t, 2, nil)
	filled(t, list[0])
	var e *diag.Error
	if _, err := (mlperf.Generator{}).Prepare(t.Context(), list[0]); !errors.As(err, &e) || e.Code != "no-data-set" ||
		!strings.Contains(e.Message, "1 of 2 VMs") || !strings.Contains(e.Hint, "same mount") {
		t.Errorf("%v", err)
	}
	filled(t, list[1])
	reading, err := mlperf.Generator{}.Prepare(t.Context(), list[0])
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	also, err := mlperf.Generator{}.Prepare(t.Context(), list[1])
	if err != nil {
		t.Fatal("two VMs read at once:", err)
	}
	_ = also.Close()
	filling := list[1]
	filling.Prefill = true
	if _, err := (mlperf.Generator{}).Prepare(t.Context(), filling); !errors.As(err, &e) || e.Code != "data-in-use" {
		t.Errorf("%v", err)
	}
	_ = reading.Close()
	// A smaller data set leaves no file of the larger one.
	for _, w := range list {
		w.Options["files"] = "20"
		filled(t, w)
	}
	if found, _ := filepath.Glob(pattern); len(found) != 20 {
		t.Errorf("%d files", len(found))
	}
}

// The ranks of a checkpoint are spread over VMs, and its bandwidth is that of the slowest VM: both VMs report the same.
func TestCheckpointsTogether(t *testing.T) {
	var list []load.Workload
	for i := range 2 {
		w := small(t, nil)
		w.Options = map[string]string{"checkpoint": "llama3-8b", "fraction": "0.0001", "checkpoints": "2", "ranks": "5"}
		w.VM, w.Ordinal = fmt.Sprintf("GPU-%04d", i+1), i
		list = append(list, w)
	}
	const rank = uint64(105e9 / 8 * 0.0001)
	got := train(t, together(t, list))
	for i, o := range got {
		if o.err != nil {
			t.Fatal(o.err)
		}
		ranks := uint64(2 + i)
		for d := range 2 {
			if g := o.sum.Directions[d]; g.Operations != 2*ranks || g.Bytes != 2*ranks*rank {
				t.Errorf("vm %d, operation %d: %d of %d bytes", i, d, g.Operations, g.Bytes)
			}
		}
		if want := "checkpoint write 2 of 2 VMs: "; !strings.Contains(o.text, want) || o.text != got[0].text {
			t.Errorf("%q is not in\n%s, or it differs from\n%s", want, o.text, got[0].text)
		}
	}
	for _, name := range []string{"checkpoint write of all VMs", "checkpoint read of all VMs"} {
		one, two := gauge(t, list[0], got[0].all, name), gauge(t, list[1], got[1].all, name)
		own := gauge(t, list[0], got[0].all, strings.TrimSuffix(name, " of all VMs"))
		if one != two || !(one > 0) || one > own*5/2*1.001 {
			t.Errorf("%s: %g and %g, and %g of 2 of 5 ranks", name, one, two, own)
		}
		if wait := gauge(t, list[1], got[1].all, "barrier wait"); math.IsNaN(wait) || wait < 0 {
			t.Errorf("barrier wait %g", wait)
		}
	}
}

// Bad values are refused with the option's name.
func TestSharedOptions(t *testing.T) {
	for _, c := range []struct {
		options map[string]string
		want    string
	}{
		{map[string]string{"dataset": "shared"}, "needs the option folder"},
		{map[string]string{"dataset": "mine"}, `"mine" is not own or shared`},
		{map[string]string{"dataset": "shared", "folder": "nas", "files": "8"}, "two steps of 6 accelerators"},
	} {
		w := small(t, c.options)
		w.Remote.VMs = 3
		_, err := mlperf.Generator{}.Plan(w)
		var faults load.OptionFaults
		if !errors.As(err, &faults) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.options, err, c.want)
		}
	}
	w := small(t, nil)
	w.Remote.VMs, w.Options = 3, map[string]string{"checkpoint": "llama3-8b", "ranks": "2"}
	if _, err := (mlperf.Generator{}).Plan(w); err == nil || !strings.Contains(err.Error(), "2 ranks for 3 VMs") {
		t.Errorf("%v", err)
	}
}
