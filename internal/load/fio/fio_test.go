package fio_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/fio"
	"github.com/braggdev/bragg/internal/testreq"
)

var update = flag.Bool("update", false, "rewrite golden files")

// markVariable is set for fio processes of this test, so that they can be found among those of others.
const markVariable = "BRAGG_FIO_TEST_MARK"

func TestMain(m *testing.M) {
	if mark := os.Getenv(helperVariable); mark != "" {
		helper()
		return
	}
	goleak.VerifyTestMain(m)
}

// needFio returns the path of fio. Tests that start it take a while each.
func needFio(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("long")
	}
	return testreq.Program(t, "fio")
}

// workload returns a workload on one file of size bytes.
func workload(t *testing.T, config string, sizeBytes int64) load.Workload {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, sizeBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	return load.Workload{
		Name: "w", Group: "g", VM: "vm1", Instance: 1, Generator: "fio", ConfigName: "w.fio", Config: config,
		Devices: []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: sizeBytes}},
		Seed:    1, ZeroUnixNanos: time.Now().UnixNano(), IntervalLength: 200 * time.Millisecond,
	}
}

// run runs w to its end and checks what holds for every sequence of intervals.
func run(t *testing.T, ctx context.Context, w load.Workload) ([]interval.Interval, error) {
	t.Helper()
	needFio(t)
	in, err := fio.Generator{}.Prepare(ctx, w)
	if err != nil {
		t.Fatal(err)
	}
	var got []interval.Interval
	err = in.Run(ctx, load.SinkFunc(func(iv interval.Interval) { got = append(got, iv) }))
	if closeErr := in.Close(); closeErr != nil {
		t.Error(closeErr)
	}
	checkSequence(t, w, got)
	return got, err
}

func checkSequence(t *testing.T, w load.Workload, got []interval.Interval) {
	t.Helper()
	for i := range got {
		iv := &got[i]
		if iv.Sequence != int64(i) || iv.Final != (i == len(got)-1) || iv.LengthNanos <= 0 || iv.Workload != w.Name ||
			iv.VM != w.VM || iv.Instance != w.Instance || iv.Prefill != w.Prefill {
			t.Errorf("interval %d of %d is %+v", i, len(got), iv)
		}
		if i > 0 && iv.StartNanos != got[i-1].EndNanos() {
			t.Errorf("interval %d starts at %d, the one before ends at %d", i, iv.StartNanos, got[i-1].EndNanos())
		}
		for d := range interval.DirectionCount {
			tr := &iv.Directions[d]
			var ops, bytes uint64
			for _, dev := range iv.Devices {
				ops += dev[d].Operations
				bytes += dev[d].Bytes
			}
			if ops != tr.Operations || bytes != tr.Bytes {
				t.Errorf("interval %d direction %d: devices have %d ops and %d bytes of %d and %d", i, d, ops, bytes, tr.Operations, tr.Bytes)
			}
			if tr.Response != nil || tr.Service != nil && tr.Service.Count() != tr.Operations {
				t.Errorf("interval %d direction %d: %d operations, histograms %v %v", i, d, tr.Operations, tr.Service, tr.Response)
			}
		}
	}
	if len(got) == 0 {
		t.Error("no interval")
	}
}

func totals(ivs []interval.Interval) (sum interval.Interval) {
	for i := range ivs {
		for d := range interval.DirectionCount {
			sum.Directions[d].Add(&ivs[i].Directions[d])
		}
		sum.CPUNanos += ivs[i].CPUNanos
	}
	return sum
}

func TestPlan(t *testing.T) {
	needFio(t)
	w := load.Workload{
		Name: "dss", Generator: "fio", ConfigName: "dss.fio", Runtime: 90 * time.Second, Config: "[global]\nioengine=libaio\n" +
			"direct=1\ntime_based\nrate_process=poisson\n[scan]\nbs=1M\nfilesize=512G\nsize=32G\nzonesize=2G\nzoneskip=30G\n" +
			"filename=/dev/sdd\nrw=read\nrate_iops=300\n[log]\nbssplit=32k/80:64k/20\nrw=randwrite\nfilename=/dev/sde\nsize=50%\nnumjobs=2\n",
		Devices: []load.Device{{Name: "/dev/sdd", SizeBytes: 512 << 30, ActualBytes: 208 << 20}, {Name: "/dev/sde", SizeBytes: 32 << 30}},
		Scale:   load.Scale{Factor: 1.0 / 4096, BlocksMin: 64},
	}
	plan, err := fio.Generator{}.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Engine.Name != "fio" || plan.Engine.Version == "" {
		t.Errorf("engine %q", plan.Engine)
	}
	plan.Engine.Version = ""
	out, err := json.MarshalIndent(plan, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	text, err := fio.JobFile(w)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/plan.golden", string(out)+"\n--- what fio reads\n"+text)
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (rewrite with -update):\n%s", path, got)
	}
}

func TestSizeBoundJobCompletes(t *testing.T) {
	w := workload(t, "[a]\nfilename=/dev/sdb\nrw=randrw\nbs=4k\nsize=4m\nioengine=psync\n[b]\nfilename=/dev/sdb\nrw=read\nbs=64k\nsize=8m\n", 8<<20)
	got, err := run(t, t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	sum := totals(got)
	read, write := sum.Directions[interval.Read], sum.Directions[interval.Write]
	if ops := read.Operations + write.Operations; ops != 1024+128 || read.Bytes+write.Bytes != 12<<20 {
		t.Errorf("%d operations and %d bytes", ops, read.Bytes+write.Bytes)
	}
	if write.Operations == 0 || write.Service.Min() == 0 || sum.CPUNanos <= 0 {
		t.Errorf("writes %+v, CPU %d ns", write, sum.CPUNanos)
	}
}

func TestRuntimeBoundsTimeBasedJob(t *testing.T) {
	w := workload(t, "[a]\nfilename=/dev/sdb\nrw=read\nbs=64k\ntime_based\nrate_iops=500\n", 4<<20)
	w.Runtime = time.Second
	got, err := run(t, t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if ops := totals(got).Directions[interval.Read].Operations; ops < 490 || ops > 510 {
		t.Errorf("%d operations at 500/s in 1 s", ops)
	}
	if len(got) < 4 {
		t.Errorf("%d intervals of 0.2 s", len(got))
	}
}

func TestPrefillWritesEverything(t *testing.T) {
	w := workload(t, "[a]\nfilename=/dev/sdb\nrw=randread\nbs=4k\nsize=3m\noffset=2m\ntime_based\nruntime=100\n", 6<<20)
	w.Prefill, w.Options = true, map[string]string{"prefill_iodepth": "2"}
	got, err := run(t, t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if sum := totals(got).Directions[interval.Write]; sum.Bytes != 3<<20 || sum.Operations != 3 {
		t.Errorf("%d bytes in %d writes", sum.Bytes, sum.Operations)
	}
	data, err := os.ReadFile(w.Devices[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	for block := range len(data) / 4096 {
		zero := !slices.ContainsFunc(data[block*4096:block*4096+4096], func(b byte) bool { return b != 0 })
		if inside := block >= 512 && block < 1280; zero == inside {
			t.Fatalf("block %d: zero is %v", block, zero)
		}
	}
}

// TestDiskFilesStayTheSameFiles runs jobs that could make fio delete or replace a file that is the disk of a VM.
func TestDiskFilesStayTheSameFiles(t *testing.T) {
	for name, config := range map[string]string{
		"unlink":             "unlink=1\nunlink_each_loop=1\nsize=1m\n",
		"filesize behind":    "filesize=4608k\nzonesize=64k\nzoneskip=3008k\n",
		"layout beforehand":  "size=4m\nfallocate=truncate\ncreate_serialize=0\noverwrite=0\n",
		"opening creates it": "size=4m\ncreate_on_open=1\nallow_file_create=1\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t, "[a]\nfilename=/dev/sdb\nrw=randwrite\nbs=64k\nnumber_ios=4\n"+config, 4<<20)
			w.Devices[0].SizeBytes = 8 << 20 // as the scenario says; a rehearsal's disk is smaller
			before, err := os.Stat(w.Devices[0].Path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := run(t, t.Context(), w); err != nil {
				t.Fatal(err)
			}
			after, err := os.Stat(w.Devices[0].Path)
			if err != nil || !os.SameFile(before, after) || after.Size() != before.Size() {
				t.Errorf("the disk is another file now: %v", err)
			}
		})
	}
}

func TestRepeatsAreEqualAndClonesDiffer(t *testing.T) {
	contents := map[string]int{}
	for _, ordinal := range []int{0, 0, 1} {
		w := workload(t, "[a]\nfilename=/dev/sdb\nrw=randwrite\nbs=4k\nsize=1m\nio_size=256k\nscramble_buffers=0\n", 1<<20)
		w.Ordinal = ordinal
		if _, err := run(t, t.Context(), w); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(w.Devices[0].Path)
		if err != nil {
			t.Fatal(err)
		}
		contents[string(data)]++
	}
	if len(contents) != 2 {
		t.Errorf("%d different contents of two equal VMs and another", len(contents))
	}
}

func TestCancelStopsFio(t *testing.T) {
	mark(t)
	w := workload(t, "[a]\nfilename=/dev/sdb\nrw=read\nbs=4k\ntime_based\nruntime=1000\nrate_iops=100\n", 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	needFio(t)
	in, err := fio.Generator{}.Prepare(ctx, w)
	if err != nil {
		t.Fatal(err)
	}
	var got []interval.Interval
	err = in.Run(ctx, load.SinkFunc(func(iv interval.Interval) {
		if len(got) == 1 {
			if marked := markedProcesses(t); len(marked) != 1 {
				t.Errorf("%d processes of fio while it runs", len(marked))
			}
			cancel()
		}
		got = append(got, iv)
	}))
	if err != nil {
		t.Errorf("cancelled run: %v", err)
	}
	checkSequence(t, w, got)
	if marked := markedProcesses(t); len(marked) != 0 {
		t.Errorf("processes %v are left", marked)
	}
	if err := in.Run(t.Context(), load.SinkFunc(func(interval.Interval) {})); err == nil {
		t.Error("a second Run has no error")
	}
}

func TestCancelBeforeStart(t *testing.T) {
	mark(t)
	w := workload(t, "[a]\nfilename=/dev/sdb\nrw=read\n", 1<<20)
	w.StartNanos = int64(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := run(t, ctx, w)
	if err != nil || len(got) != 1 {
		t.Errorf("%d intervals, error %v", len(got), err)
	}
}

// TestStubbornFioIsKilled uses a program in fio's place that ignores SIGINT.
func TestStubbornFioIsKilled(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" = --version ] && echo fio-9.99 && exit\ntrap '' INT\n" +
		"printf '{\\n\"timestamp_ms\" : 1, \"jobs\" : []\\n}\\n'\necho stubborn >&2\nexec sleep 1000\n"
	if err := os.WriteFile(filepath.Join(dir, "fio"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	mark(t)
	w := workload(t, "[a]\nfilename=/dev/sdb\n", 1<<20)
	in, err := fio.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	fio.SetGrace(in, 50*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := in.Run(ctx, load.SinkFunc(func(interval.Interval) { cancel() })); err != nil {
		t.Errorf("cancelled run: %v", err)
	}
	if marked := markedProcesses(t); len(marked) != 0 {
		t.Errorf("processes %v are left", marked)
	}
}

func TestErrorsSayWhatFioSaid(t *testing.T) {
	w := workload(t, "[a]\nfilename=/dev/sdb\nioengine=psync\ncmdprio_percentage=5\n", 1<<20)
	_, err := run(t, t.Context(), w)
	if err == nil || !strings.Contains(err.Error(), "cmdprio_percentage") || !strings.Contains(err.Error(), `workload "w"`) {
		t.Errorf("error %v", err)
	}
}

func TestMissingFio(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	w := workload(t, "[a]\nfilename=/dev/sdb\n", 1<<20)
	_, planErr := fio.Generator{}.Plan(w)
	_, err := fio.Generator{}.Prepare(t.Context(), w)
	for _, err := range []error{planErr, err} {
		var told *diag.Error
		if !errors.As(err, &told) || told.Code != "fio-missing" || !strings.Contains(told.Hint, "install") || diag.ExitCode(err) != diag.ExitUnavailable {
			t.Errorf("error %v", err)
		}
	}
}

func TestRefusals(t *testing.T) {
	needFio(t)
	for name, c := range map[string]struct {
		change func(w *load.Workload)
		want   string
	}{
		"runs a program":   {func(w *load.Workload) { w.Config += "exec_prerun=date\n" }, "runs a program"},
		"other file":       {func(w *load.Workload) { w.Config = "[a]\nfilename=/etc/passwd\n" }, "not a device of the VM"},
		"no file":          {func(w *load.Workload) { w.Config = "[a]\n" }, "names no device"},
		"network":          {func(w *load.Workload) { w.Config += "ioengine=net\n" }, "does not use the devices"},
		"unknown option":   {func(w *load.Workload) { w.Options = map[string]string{"x": "y"} }, "no such option"},
		"bad depth":        {func(w *load.Workload) { w.Options = map[string]string{"prefill_iodepth": "0"} }, "want a queue depth"},
		"behind the end":   {func(w *load.Workload) { w.Config += "offset=1g\n" }, "behind the end"},
		"unprintable path": {func(w *load.Workload) { w.Devices[0].Path = "/tmp/x;y" }, "cannot be written"},
		"expanded path":    {func(w *load.Workload) { w.Devices[0].Path = "/tmp/${HOME}" }, "cannot be written"},
		"expanded value":   {func(w *load.Workload) { w.Config += "verify_pattern=$ncpus\n" }, "not known here"},
		"several sizes": {func(w *load.Workload) {
			w.Config = "[a]\nfilename=/dev/sdb:/dev/sdc\n"
			w.Devices = append(w.Devices, load.Device{Name: "/dev/sdc", SizeBytes: 7 << 20})
			w.Scale = load.Scale{Factor: 0.5, BlocksMin: 64}
		}, "several sizes"},
		"short file":     {func(w *load.Workload) { w.Devices[0].SizeBytes = 2 << 20 }, "the job uses it up to 2097152"},
		"missing device": {func(w *load.Workload) { w.Devices[0].Path += "gone" }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t, "[a]\nfilename=/dev/sdb\n", 1<<20)
			c.change(&w)
			_, err := fio.Generator{}.Prepare(t.Context(), w)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestReadErrorsAreCounted reads from a loop device whose backing file was truncated.
func TestReadErrorsAreCounted(t *testing.T) {
	testreq.Root(t)
	w := workload(t, "[a]\nfilename=/dev/sdb\nioengine=libaio\ndirect=1\nrw=randread\nbs=4k\nsize=1m\niodepth=4\n", 1<<20)
	device := testreq.Loop(t, w.Devices[0].Path)
	if err := os.Truncate(w.Devices[0].Path, 512<<10); err != nil {
		t.Fatal(err)
	}
	w.Devices[0].Path = device
	got, err := run(t, t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	sum := totals(got).Directions[interval.Read]
	if sum.Operations != 128 || sum.Bytes != 512<<10 || sum.Errors["EIO"] != 128 {
		t.Errorf("%d operations, %d bytes, errors %v; want 128, 512 KiB, 128 EIO", sum.Operations, sum.Bytes, sum.Errors)
	}

	w.Config += "continue_on_error=none\n"
	got, err = run(t, t.Context(), w)
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), "input/output error") {
		t.Errorf("error %v", err)
	}
	if n := totals(got).Directions[interval.Read].Errors["EIO"]; n != 1 {
		t.Errorf("%d errors until the job ended", n)
	}
}

// TestBytesAgreeWithTheDevice compares the intervals with the kernel's counters of a device that only the test uses.
func TestBytesAgreeWithTheDevice(t *testing.T) {
	needFio(t)
	testreq.Root(t)
	w := workload(t, "[a]\nfilename=/dev/sdb\nioengine=libaio\ndirect=1\nrw=randrw\nbssplit=4k/50:16k/50\nsize=16m\niodepth=4\n", 16<<20)
	w.Devices[0].Path = testreq.Loop(t, w.Devices[0].Path)
	w.Devices[0].Consent = load.Consent{Own: true, SizeBytes: w.Devices[0].SizeBytes}
	in, err := fio.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	before := sectors(t, w.Devices[0].Path) // reads that examine the device are not part of the load
	var got []interval.Interval
	if err := in.Run(t.Context(), load.SinkFunc(func(iv interval.Interval) { got = append(got, iv) })); err != nil {
		t.Fatal(err)
	}
	after := sectors(t, w.Devices[0].Path)
	sum := totals(got)
	for d, name := range []string{"read", "write"} {
		device := float64(after[d]-before[d]) * 512
		if ratio := float64(sum.Directions[d].Bytes) / device; ratio < 0.99 || ratio > 1.01 {
			t.Errorf("%s: %d bytes in intervals, %g on the device", name, sum.Directions[d].Bytes, device)
		}
	}
}

// sectors returns the sectors of 512 bytes read from and written to a block device.
func sectors(t *testing.T, device string) [2]uint64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data))
	read, errRead := strconv.ParseUint(fields[2], 10, 64)
	write, errWrite := strconv.ParseUint(fields[6], 10, 64)
	if err := errors.Join(errRead, errWrite); err != nil {
		t.Fatal(err)
	}
	return [2]uint64{read, write}
}
