package mlperf_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/lockstep"
	"github.com/braggdev/bragg/internal/load/mlperf"
)

const helperTrains = "BRAGG_MLPERF_TEST_TRAINS"

// TestMain is a training on another VM, if the parent of this process wants that.
func TestMain(m *testing.M) {
	if text := os.Getenv(helperTrains); text != "" {
		var w load.Workload
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		loadtest.BeHelper(mlperf.Generator{}, w)
	}
	os.Exit(m.Run())
}

// training is a load of one VM for each of the options, whose coordinator runs until the test ends.
func training(t *testing.T, options ...map[string]string) (list []load.Workload) {
	t.Helper()
	for i, o := range options {
		w := small(t, o)
		w.VM, w.Ordinal = fmt.Sprintf("GPU-%04d", i+1), i
		list = append(list, filled(t, w))
	}
	return together(t, list)
}

// together lets loads go in step, by a coordinator that runs until the test ends.
func together(t *testing.T, list []load.Workload) []load.Workload {
	t.Helper()
	secret := lockstep.NewSecret()
	var remote load.Remote
	for _, w := range list {
		remote.Peers = append(remote.Peers, load.Peer{VM: w.VM, Address: "127.0.0.1"})
	}
	serving := list[0]
	serving.Remote = load.Remote{Serves: true, Address: "127.0.0.1", Peers: remote.Peers, VMs: len(list), Secret: secret}
	in, err := mlperf.Generator{}.Prepare(t.Context(), serving)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	for i, port := range in.(load.Server).Ports() {
		list[i].Remote = load.Remote{VMs: len(list), Rank: i, Secret: secret, Peers: []load.Peer{{VM: list[0].VM, Address: "127.0.0.1", Port: port}}}
	}
	return list
}

// outcome is what one VM of a training recorded.
type outcome struct {
	sum  loadtest.Sum
	all  []interval.Interval
	text string
	took time.Duration
	err  error
}

func train(t *testing.T, list []load.Workload) []outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := make([]outcome, len(list))
	var vms sync.WaitGroup
	for i, w := range list {
		vms.Go(func() {
			o, began := &got[i], time.Now()
			in, err := mlperf.Generator{}.Prepare(ctx, w)
			if o.err = err; err != nil {
				return
			}
			var log loadtest.Log
			o.err = in.Run(ctx, &log)
			o.took, o.all, o.sum = time.Since(began), log.Intervals(), loadtest.Add(log.Intervals())
			for _, out := range in.(load.Teller).Outputs() {
				o.text += out.Text
			}
		})
	}
	vms.Wait()
	return got
}

// gauge is the last value of a gauge.
func gauge(t *testing.T, w load.Workload, all []interval.Interval, name string) float64 {
	t.Helper()
	p, err := mlperf.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range p.Engine.Gauges {
		if g.Name == name {
			last := math.NaN() // of all that are known
			for k := range all {
				if v := all[k].Gauges[i]; !math.IsNaN(v) {
					last = v
				}
			}
			return last
		}
	}
	t.Fatalf("no gauge %q", name)
	return 0
}

// waitPerStep is what a VM waited at the barrier in milliseconds, over the whole load: a gauge has the last interval alone.
func waitPerStep(t *testing.T, text string) (ms float64) {
	t.Helper()
	_, rest, _ := strings.Cut(text, "wait for other VMs ")
	if _, err := fmt.Sscanf(rest, "%f ms per step", &ms); err != nil {
		t.Fatalf("no wait in %q: %v", text, err)
	}
	return ms
}

// Two VMs with the same number of steps, the files of one of which are 400 times as large. Truth is what each VM recorded of its reads: the
// readers of the slow one cannot be faster than these, and the fast one takes as long although its own reads are short.
func TestSlowestSetsThePace(t *testing.T) {
	slow := map[string]string{"record_length": "24MiB", "transfer_size": "4KiB", "read_threads": "1", "computation_time": "1ms", "files": "24"}
	fast := map[string]string{"read_threads": "1", "computation_time": "1ms", "files": "24"}
	list := training(t, fast, slow)
	got := train(t, list)
	for i, o := range got {
		if o.err != nil {
			t.Fatal(o.err)
		}
		if o.sum.Directions[0].Operations != 48 || strings.Count(o.text, ": 6 steps in ") != 2 {
			t.Errorf("vm %d read %d samples: %s", i, o.sum.Directions[0].Operations, o.text)
		}
	}
	wait, waitOfSlow := waitPerStep(t, got[0].text), waitPerStep(t, got[1].text)
	var reading [2]time.Duration // of each of the two readers
	for i, o := range got {
		h := o.sum.Directions[0].Service
		reading[i] = time.Duration(h.Mean()*float64(h.Count())) / 2
	}
	t.Logf("reads take %v, trainings %v and %v; barrier wait %.3f ms and %.3f ms\n%s%s", reading, got[0].took, got[1].took, wait, waitOfSlow, got[0].text, got[1].text)
	if reading[1] < 3*reading[0] {
		t.Fatal("the slow VM is not slow")
	}
	if got[0].took < reading[1]*9/10 {
		t.Errorf("the fast VM took %v beside one that reads for %v", got[0].took, reading[1])
	}
	if wait < 2*waitOfSlow {
		t.Errorf("the fast VM waited %.3f ms per step at the barrier, the slow one %.3f ms", wait, waitOfSlow)
	}
	for _, name := range []string{"AU of all VMs", "training samples of all VMs"} {
		one, two := gauge(t, list[0], got[0].all, name), gauge(t, list[1], got[1].all, name)
		if one != two || !(one > 0) {
			t.Errorf("%s: %g and %g", name, one, two)
		}
	}
	own, all := gauge(t, list[0], got[0].all, "training samples")+gauge(t, list[1], got[1].all, "training samples"), gauge(t, list[0], got[0].all, "training samples of all VMs")
	if all < 0.98*own || all > 1.02*own {
		t.Errorf("%g samples/s of all VMs, whose own are %g", all, own)
	}
}

// All VMs of a search try the same numbers, and have one answer.
func TestSearchTogether(t *testing.T) {
	options := map[string]string{"accelerators": "auto", "accelerators_max": "3", "search_steps": "12", "files": "120", "batch_size": "1", "computation_time": "20ms", "read_threads": "1"}
	got := train(t, training(t, options, options))
	var answers [2]string
	for i, o := range got {
		if o.err != nil {
			t.Fatal(o.err)
		}
		for _, line := range strings.Split(o.text, "\n") {
			if words := strings.SplitN(line, " in ", 2); !strings.HasPrefix(line, "all VMs") {
				answers[i] += words[0] + "\n"
			}
		}
	}
	if answers[0] != answers[1] || !strings.Contains(answers[0], "trial 1: 1 accelerator on each of 2 VMs") {
		t.Errorf("%s%s", answers[0], answers[1])
	}
}

// VMs whose time is over end together without an error, in the time of the load.
func TestRuntimeTogether(t *testing.T) {
	list := training(t, nil, nil, nil)
	for i := range list {
		list[i].Runtime = 1500 * time.Millisecond
	}
	for i, o := range train(t, list) {
		if o.err != nil || o.took < list[i].Runtime || !strings.Contains(o.text, "all VMs together: accelerators 6, ") {
			t.Errorf("vm %d: %v after %v\n%s", i, o.err, o.took, o.text)
		}
	}
}

// A VM that is killed ends the training of the other one, which says which VM that was.
func TestLostVM(t *testing.T) {
	list := training(t, nil, nil)
	for i := range list {
		list[i].Runtime, list[i].IntervalLength = time.Minute, 100*time.Millisecond
	}
	text, err := json.Marshal(list[1])
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperTrains+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		lines := bufio.NewScanner(out)
		for range 3 {
			lines.Scan()
		}
		_ = cmd.Process.Kill()
	}()
	o := train(t, list[:1])[0]
	_ = cmd.Wait()
	if o.err == nil || !strings.Contains(o.err.Error(), `vm "GPU-0002" was lost`) || o.took > 30*time.Second || !strings.Contains(o.text, "all VMs together") {
		t.Errorf("%v after %v\n%s", o.err, o.took, o.text)
	}
}

// A VM that cannot read ends the training of the other one with its reason.
func TestFailedVM(t *testing.T) {
	list := training(t, nil, nil)
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(list[1].Devices[0].Path), "mlperf_storage-sdb", "sdb", "train", "*", "*.bin"))
	if len(files) != 40 {
		t.Fatalf("%d files", len(files))
	}
	if err := os.Truncate(files[17], 100); err != nil {
		t.Fatal(err)
	}
	got := train(t, list)
	if got[1].err == nil || got[0].err == nil || !strings.Contains(got[0].err.Error(), `vm "GPU-0002" ended the load`) {
		t.Errorf("%v; %v", got[0].err, got[1].err)
	}
}
