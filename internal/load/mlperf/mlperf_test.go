package mlperf_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/mlperf"
)

// small is a training that fits into a test: 40 files of about 64 KiB, two accelerators, 10 steps of 10 ms.
func small(t testing.TB, options map[string]string) load.Workload {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sdb")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := load.Workload{Name: "Train", Group: "GPU", VM: "GPU-0001", Instance: 1, Generator: mlperf.Name, Seed: 42,
		Devices: []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: 1 << 30}},
		Options: map[string]string{"model": "unet3d", "files": "40", "batch_size": "2", "accelerators": "2", "record_length": "64KiB",
			"computation_time": "10ms", "epochs": "2"}}
	for name, value := range options {
		if w.Options[name] = value; value == "" {
			delete(w.Options, name)
		}
	}
	return w
}

func filled(t testing.TB, w load.Workload) load.Workload {
	t.Helper()
	filling := w
	filling.Prefill = true
	run(t, filling)
	return w
}

// run returns the intervals and the text of a load that must succeed.
func run(t testing.TB, w load.Workload) (loadtest.Sum, []interval.Interval, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	in, err := mlperf.Generator{}.Prepare(ctx, w)
	if err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	if err := in.Run(ctx, &log); err != nil {
		t.Fatal(err)
	}
	all := log.Intervals()
	loadtest.CheckIntervals(t, w, all)
	text := ""
	for _, o := range in.(load.Teller).Outputs() {
		if !o.Valid() {
			t.Errorf("output %q", o.Name)
		}
		text += o.Text
	}
	return loadtest.Add(all), all, text
}

func TestContract(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	loadtest.RunAny(t, loadtest.Subject{Generator: mlperf.Generator{}, Endless: func(t testing.TB) load.Workload { return filled(t, small(t, nil)) }})
}

func TestContractOfSimulation(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	loadtest.RunAny(t, loadtest.Subject{Generator: mlperf.Simulation{}, Endless: func(t testing.TB) load.Workload { return small(t, nil) }})
}

// Every sample of the data set is read once in an epoch, and bytes are those of the files.
func TestTrainingReadsEverySample(t *testing.T) {
	w := filled(t, small(t, nil))
	var bytes uint64
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(w.Devices[0].Path), "mlperf_storage-sdb", "sdb", "train", "*", "*.bin"))
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		bytes += uint64(info.Size())
	}
	sum, all, text := run(t, w)
	if got := sum.Directions[0]; len(files) != 40 || got.Operations != 80 || got.Bytes != 2*bytes {
		t.Errorf("%d files of %d bytes in all: %d samples, %d bytes", len(files), bytes, got.Operations, got.Bytes)
	}
	for _, want := range []string{"epoch 2: 10 steps", "accelerators 2, steps 20, AU "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for i, g := range all[len(all)-1].Gauges {
		if math.IsNaN(g) || g <= 0 && i != 4 {
			t.Errorf("gauge %d is %g", i, g)
		}
	}
}

// Samples of a file are read in pieces, by all readers.
func TestTrainingWithSeveralSamplesPerFile(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	w := filled(t, small(t, map[string]string{"model": "resnet50", "files": "3", "samples_per_file": "7", "batch_size": "5", "transfer_size": "4KiB"}))
	sum, _, _ := run(t, w)
	if got := sum.Directions[0]; got.Operations != 2*2*2*5 || got.Bytes != 40*64<<10 {
		t.Errorf("%d samples, %d bytes", got.Operations, got.Bytes)
	}
}

func TestSearch(t *testing.T) {
	w := filled(t, small(t, map[string]string{"accelerators": "auto", "accelerators_max": "2", "search_steps": "10", "computation_time": "60ms"}))
	_, all, text := run(t, w)
	found := 0
	for _, accelerators := range []int{1, 2} {
		if strings.Contains(text, fmt.Sprintf("with AU 90.00 %% is %d\n", accelerators)) || strings.Contains(text, fmt.Sprintf("\n%d accelerators reach AU", accelerators)) {
			found = accelerators
		}
	}
	// A search that ends within its first interval has no other.
	if g := all[len(all)-1].Gauges; g[len(g)-1] != float64(found) || len(all) > 1 && !math.IsNaN(all[0].Gauges[len(g)-1]) {
		t.Errorf("gauges %v after\n%s", g, text)
	}
	// On a machine that has no CPU to spare, not even one accelerator may reach the threshold.
	if !strings.Contains(text, "trial 1: 1 accelerator, 10 steps in ") || strings.Contains(text, "not decided") || !strings.Contains(text, "AU 90.00 %") {
		t.Errorf("%s", text)
	}
}

func TestCheckpoint(t *testing.T) {
	w := small(t, nil)
	w.Options = map[string]string{"checkpoint": "llama3-8b", "fraction": "0.00001", "checkpoints": "2", "ranks": "3"}
	sum, all, text := run(t, w)
	const rank = 105e9 / 8 * 0.00001
	for d := range 2 {
		if got := sum.Directions[d]; got.Operations != 6 || got.Bytes != 6*uint64(rank) {
			t.Errorf("operation %d: %d of %d bytes", d, got.Operations, got.Bytes)
		}
	}
	for _, want := range []string{"0.001 % of the size of llama3-8b", "3 of the 8 ranks", "checkpoint read: mean"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(w.Devices[0].Path), "*", "checkpoints")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	for _, name := range []string{"checkpoint write", "checkpoint read"} {
		if g := gauge(t, w, all, name); !(g > 0) {
			t.Errorf("%s: %v", name, g)
		}
	}
}

// Checkpoints that end in one interval count each once.
func TestCheckpointsOfOneInterval(t *testing.T) {
	unknown := math.NaN()
	now, next := mlperf.CheckpointGauges(interval.GaugeValues{100, unknown}, interval.GaugeValues{300, unknown}, interval.GaugeValues{unknown, 50})
	if now[0] != 200 || now[1] != 50 || !math.IsNaN(next[0]) || !math.IsNaN(next[1]) {
		t.Errorf("%v, then %v; want [200 50], then unknown ones", now, next)
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"model", "bert", `model: "bert" is not one of unet3d`}, {"modell", "x", `did you mean "model"?`}, {"accelerators", "0", "accelerators"},
		{"accelerators", "1e9", "accelerators"}, {"data", "1GiB", "ambiguous"}, {"files", "", "missing"}, {"computation_time", "NaN", "computation_time"},
		{"computation_time", "-1s", "computation_time"}, {"record_length_stdev", "1TiB", "record_length_stdev"}, {"disk", "/dev/sdx", "/dev/sdx"},
		{"folder", "../etc", "folder"}, {"files", "3", "less than two steps"}, {"transfer_size", "1", "transfer_size"}, {"fraction", "0.5", "checkpoint"},
		{"checkpoint", "gpt", "llama3-8b"}, {"search_steps", "3", "auto"}, {"accelerators", "1000", "readers"}, {"read_threads", "33", "read_threads"},
		{"record_length", "1EiB", "at most 1 PiB"}, {"record_length", "1PiB", "at most 1 PiB"},
	} {
		_, err := mlperf.Generator{}.Plan(small(t, map[string]string{c.name: c.value}))
		var e *diag.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || e.Hint == "" {
			t.Errorf("%s=%s: %v, want %q", c.name, c.value, err, c.want)
		}
	}
}

// A data set that is not there, or was made with other parameters or not completed, is not read.
func TestDataSetMustBeComplete(t *testing.T) {
	w := small(t, nil)
	refused := func() {
		t.Helper()
		var e *diag.Error
		if _, err := (mlperf.Generator{}).Prepare(t.Context(), w); !errors.As(err, &e) || e.Code != "no-data-set" {
			t.Errorf("%v", err)
		}
	}
	refused()
	filled(t, w)
	w.Options["record_length"] = "65KiB"
	refused()
	w.Options["record_length"] = "64KiB"
	if err := os.Remove(filepath.Join(filepath.Dir(w.Devices[0].Path), "mlperf_storage-sdb", "sdb", "dataset")); err != nil {
		t.Fatal(err)
	}
	refused()
}

// A file that is shorter than it was fails the load.
func TestTruncatedFile(t *testing.T) {
	w := filled(t, small(t, nil))
	if err := os.Truncate(filepath.Join(filepath.Dir(w.Devices[0].Path), "mlperf_storage-sdb", "sdb", "train", "00000", "000017.bin"), 1000); err != nil {
		t.Fatal(err)
	}
	var log loadtest.Log
	if err := loadtest.Drive(t.Context(), mlperf.Generator{}, w, &log); err == nil || !strings.Contains(err.Error(), "read") {
		t.Errorf("%v", err)
	}
	loadtest.CheckIntervals(t, w, log.Intervals())
}

// Notes on the machine are in the engine: a data set below the rule, the mount, changed parameters.
func TestNotes(t *testing.T) {
	w := filled(t, small(t, nil))
	in, err := mlperf.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	text := in.(load.Describer).Engine().String()
	for _, want := range []string{"small-data", "mount", "open-division"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

// A folder is the machine's choice, and a scenario knows only its name.
func TestFolder(t *testing.T) {
	w := small(t, map[string]string{"folder": "nas"})
	if _, err := (mlperf.Generator{}).Prepare(t.Context(), w); err == nil || !strings.Contains(err.Error(), "not defined") {
		t.Errorf("%v", err)
	}
	base := t.TempDir()
	t.Setenv("BRAGG_FOLDER_NAS", base)
	filled(t, w)
	if found, _ := filepath.Glob(filepath.Join(base, "mlperf_storage-GPU-0000", "train", "*", "*.bin")); len(found) != 40 {
		t.Errorf("%d files", len(found))
	}
	run(t, w)
}

// A rehearsal has smaller samples.
func TestScale(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for _, factor := range []float64{0.5, 0.01} {
		w := small(t, nil)
		w.Scale.Factor = factor
		p, err := mlperf.Generator{}.Plan(w)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := float64(p.Extents[0].Length), 40*65536*factor; math.Abs(got/want-1) > 0.05 || p.ScaledFrom != 40*65536 {
			t.Errorf("factor %g: %g bytes, want %g, from %d", factor, got, want, p.ScaledFrom)
		}
		run(t, filled(t, w))
	}
}

func TestFileSystems(t *testing.T) {
	for name, options := range map[string]map[string]string{
		"training":    nil,
		"checkpoints": {"checkpoint": "llama3-8b", "fraction": "0.0001", "checkpoints": "2", "model": "", "files": "", "batch_size": "", "accelerators": "", "record_length": "", "computation_time": "", "epochs": ""},
	} {
		t.Run(name, func(t *testing.T) {
			loadtest.RunFileSystems(t, mlperf.Generator{}, func(t testing.TB) load.Workload {
				w := small(t, options)
				w.Runtime = 400 * time.Millisecond
				return w
			})
		})
	}
}
