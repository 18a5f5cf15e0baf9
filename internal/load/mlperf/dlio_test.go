package mlperf_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// A small unet3d, on two accelerators.
const (
	dlioFiles   = 40
	dlioBatch   = 2
	dlioEpochs  = 4
	dlioRecord  = 1_000_000
	dlioStdev   = 466_000
	dlioReaders = 2
	dlioRounds  = 3
	dlioCompute = "0.636" // of an A100
)

// trained is the AU in percent and the samples/s of each epoch.
type trained struct {
	AU      []float64 `json:"train_au_percentage"`
	Samples []float64 `json:"train_throughput_samples_per_second"`
}

// TestAgreesWithDLIO runs DLIO and this generator with equal parameters, in turns. BRAGG_DLIO is a virtual environment of Python with
// dlio-benchmark 2.0.0 (docs/guides/ml-training.md). The first epoch of DLIO starts its readers, which are processes; it is left out.
// On both sides the best epoch counts: whatever else a machine does can only lower AU, and lowers that of Python's processes more.
func TestAgreesWithDLIO(t *testing.T) {
	folder := testreq.Soak(t, "BRAGG_DLIO", "needs a virtual environment with DLIO")
	d := dlio{t: t, folder: folder, work: t.TempDir()}
	d.run("generate", 1)
	w := small(t, map[string]string{"files": fmt.Sprint(dlioFiles), "batch_size": fmt.Sprint(dlioBatch), "epochs": fmt.Sprint(dlioEpochs),
		"record_length": fmt.Sprint(dlioRecord), "record_length_stdev": fmt.Sprint(dlioStdev), "read_threads": fmt.Sprint(dlioReaders),
		"computation_time": dlioCompute + "s"})
	filled(t, w)
	var theirs, ours trained
	for round := range dlioRounds {
		d.run("train", 2)
		theirs.add(d.summary())
		_, _, text := run(t, w)
		ours.add(epochsOf(t, text))
		n := len(ours.AU) - (dlioEpochs - 1)
		t.Logf("round %d, epochs 2 to %d: AU %.2f %% of DLIO, %.2f %% of Bragg; samples/s %.3f and %.3f", round+1, dlioEpochs,
			theirs.AU[n:], ours.AU[n:], theirs.Samples[n:], ours.Samples[n:])
	}
	t.Logf("median of %d epochs: AU %.2f %% of DLIO, %.2f %% of Bragg; samples/s %.3f and %.3f", len(ours.AU), median(theirs.AU), median(ours.AU),
		median(theirs.Samples), median(ours.Samples))
	au, ourAU, rate, ourRate := slices.Max(theirs.AU), slices.Max(ours.AU), slices.Max(theirs.Samples), slices.Max(ours.Samples)
	t.Logf("best epoch: AU %.2f %% of DLIO, %.2f %% of Bragg (%+.2f points); samples/s %.3f and %.3f (%+.2f %%)", au, ourAU, ourAU-au,
		rate, ourRate, 100*(ourRate/rate-1))
	if math.Abs(ourAU-au) > 1 || math.Abs(ourRate/rate-1) > 0.03 {
		t.Error("they differ by more than 1 point of AU or 3 % of samples/s")
	}
}

func (r *trained) add(o trained) {
	r.AU, r.Samples = append(r.AU, o.AU[1:]...), append(r.Samples, o.Samples[1:]...)
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// epochsOf reads the text of a load.
func epochsOf(t *testing.T, text string) (r trained) {
	t.Helper()
	for rest := text; ; {
		var number, steps int
		var seconds, au, samples float64
		if n, _ := fmt.Sscanf(rest, "epoch %d: %d steps in %f s, AU %f %%, %f samples/s", &number, &steps, &seconds, &au, &samples); n != 5 {
			break
		}
		r.AU, r.Samples = append(r.AU, au), append(r.Samples, samples)
		_, rest, _ = strings.Cut(rest, "\n")
	}
	if len(r.AU) != dlioEpochs {
		t.Fatalf("epochs of %s", text)
	}
	return r
}

type dlio struct {
	t            *testing.T
	folder, work string
}

// run generates the data set or trains on it, with that many processes.
func (d *dlio) run(phase string, processes int) {
	d.t.Helper()
	stub := filepath.Join(d.work, "stub", "tensorflow") // a profiler imports it
	if err := os.MkdirAll(stub, 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stub, "__init__.py"), nil, 0o600); err != nil {
		d.t.Fatal(err)
	}
	python := map[bool]string{true: "True", false: "False"}
	args := []string{"-np", fmt.Sprint(processes), "--oversubscribe", filepath.Join(d.folder, "bin", "dlio_benchmark"), "workload=unet3d_a100"}
	for _, set := range []string{"workflow.generate_data=" + python[phase == "generate"], "workflow.train=" + python[phase == "train"],
		"workflow.checkpoint=False", "dataset.data_folder=" + filepath.Join(d.work, "data"), fmt.Sprintf("dataset.num_files_train=%d", dlioFiles),
		fmt.Sprintf("dataset.record_length=%d", dlioRecord), fmt.Sprintf("dataset.record_length_stdev=%d", dlioStdev), "dataset.record_length_resize=20000",
		fmt.Sprintf("reader.batch_size=%d", dlioBatch), fmt.Sprintf("reader.read_threads=%d", dlioReaders), "train.computation_time=" + dlioCompute,
		fmt.Sprintf("train.epochs=%d", dlioEpochs)} {
		args = append(args, "++workload."+set)
	}
	cmd := exec.CommandContext(d.t.Context(), "mpirun", append(args, "++hydra.run.dir="+filepath.Join(d.work, phase))...)
	cmd.Dir = d.work
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "PYTHONPATH="+filepath.Dir(stub))
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%s: %v\n%s", phase, err, out[max(0, len(out)-2000):])
	}
}

// summary reads what DLIO wrote; its exit status does not say whether the AU was met.
func (d *dlio) summary() trained {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.work, "train", "summary.json"))
	if err != nil {
		d.t.Fatal(err)
	}
	var s struct {
		Metric trained `json:"metric"`
	}
	if err := json.Unmarshal(text, &s); err != nil || len(s.Metric.AU) != dlioEpochs || len(s.Metric.Samples) != dlioEpochs {
		d.t.Fatalf("%v in %s", err, text)
	}
	return s.Metric
}
