package loadtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/testreq"
)

// Forbidden workloads are refused by Plan and by Prepare, the error names the fault, and nothing is left behind.
func testRefusals(t *testing.T, s suite) {
	foreign := filepath.Join(t.TempDir(), "foreign")
	if err := os.WriteFile(foreign, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ config, says string }{
		"a device that the VM does not have": {"[job]\nfilename=/dev/sdz\nrw=write\n", "/dev/sdz"},
		"a file of the machine":              {"[job]\nfilename=" + foreign + "\nrw=write\n", foreign},
		"no device":                          {"[job]\nrw=write\nsize=1m\n", "job"},
		"an unknown option":                  {"[job]\nfilename=/dev/sdb\nrw=read\nno_such_option=1\n", "no_such_option"},
		"a program":                          {"[job]\nfilename=/dev/sdb\nrw=read\nexec_prerun=/bin/true\n", "exec_prerun"},
		"a size that is none":                {"[job]\nfilename=/dev/sdb\nrw=read\nsize=many\n", "size"},
		"no job":                             {"[global]\nrw=read\n", "job"},
		"an offset beyond the end":           {"[job]\nfilename=/dev/sdb\nrw=write\noffset=1t\nsize=1m\n", "offset"},
	} {
		w := s.workload(t, c.config)
		nothingLeft := NothingLeft(t)
		if _, err := s.Generator.Plan(w); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: plan says %v, want an error with %q", name, err, c.says)
		}
		instance, err := s.Generator.Prepare(t.Context(), w)
		if err == nil {
			t.Errorf("%s: prepare accepts it", name)
			_ = instance.Close()
		}
		nothingLeft()
	}
}

// Two runs with one seed touch the same blocks.
func testRepeat(t *testing.T, s suite) {
	var runs [2][]int
	for i := range runs {
		w := s.workload(t, "[job]\nfilename=/dev/sdb\nrw=randwrite\nbs=4k\nnumber_ios=200\nnorandommap\nioengine=libaio\niodepth=4\ndirect=1\n")
		if n := s.mustRun(t, w).Directions[interval.Write].Operations; n != 200 {
			t.Errorf("%d operations with number_ios=200", n)
		}
		runs[i] = changedBlocks(t, w, 0)
	}
	if !slices.Equal(runs[0], runs[1]) {
		t.Error("two runs with the same seed wrote other blocks")
	}
}

// A prefill writes the extents that the jobs use, once, regardless of what the jobs themselves do.
func testPrefill(t *testing.T, s suite) {
	w := s.workload(t, "[read]\nfilename=/dev/sdb\nrw=randread\nbs=8k\noffset=2m\nsize=8m\nrate_iops=10\ntime_based\n"+
		"[log]\nfilename=/dev/sdc\nrw=randwrite\nbs=32k\nsize=1m\n")
	w.Prefill = true
	sum := s.mustRun(t, w)
	if bytes := sum.Directions[interval.Write].Bytes; bytes != 9<<20 || sum.Directions[interval.Read].Operations != 0 {
		t.Errorf("%d bytes were written, want 9 MiB", bytes)
	}
	if got := changedBlocks(t, w, 0); !slices.Equal(got, count(512, 2048)) {
		t.Errorf("%d blocks of /dev/sdb were written", len(got))
	}
	if got := changedBlocks(t, w, 1); !slices.Equal(got, count(0, 256)) {
		t.Errorf("%d blocks of /dev/sdc were written", len(got))
	}
}

// Scale shrinks extents by its factor, and the device may then be smaller than the size in the workload.
func testScale(t *testing.T, s suite) {
	w := s.workload(t, "[job]\nfilename=/dev/sdb\nrw=write\nbs=64k\noffset=1g\nsize=4g\nioengine=libaio\ndirect=1\niodepth=4\n")
	w.Devices[0].SizeBytes = 8 << 30
	w.Scale = load.Scale{Factor: 1.0 / 1024, BlocksMin: 16}
	plan, err := s.Generator.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	want := extent.Extent{Device: "/dev/sdb", Offset: 1 << 20, Length: 4 << 20, Writes: true}
	if len(plan.Extents) != 1 || plan.Extents[0] != want || plan.ScaledFrom != 4<<30 {
		t.Errorf("plan: %+v, scaled from %d", plan.Extents, plan.ScaledFrom)
	}
	if n := s.mustRun(t, w).Directions[interval.Write].Operations; n != 64 {
		t.Errorf("%d operations, want 64", n)
	}
	if got := changedBlocks(t, w, 0); !slices.Equal(got, count(256, 1024)) {
		t.Errorf("%d blocks were written", len(got))
	}
}

// testRateScale: the plan and the issued rate follow the factor; an invalid factor is refused by name.
func testRateScale(t *testing.T, s suite) {
	w := s.workload(t, "[j]\nfilename=/dev/sdb\nrw=randread\nbs=4k\nsize=4m\nrate_iops=100\nruntime=1\ntime_based\n")
	w.Options = map[string]string{load.OptionRateScale: "2.5"}
	plan, err := s.Generator.Plan(w)
	if err != nil {
		t.Fatal(err)
	}
	if got := plan.Jobs[0].RateIOPS; got != 250 {
		t.Errorf("the plan has %v operations a second, want 250", got)
	}
	sum := s.mustRun(t, w)
	scheduled := sum.Directions[interval.Read].Response != nil
	if loop := plan.Engine.Loop; loop == interval.LoopClosed || scheduled != (loop == interval.LoopOpen) {
		t.Errorf("loop %q of a job with a rate; response times are recorded: %t", loop, scheduled)
	}
	if n := sum.Directions[interval.Read].Operations; n < 200 || n > 260 {
		t.Errorf("%d operations in 1 s at 250 a second", n)
	}
	for _, bad := range []string{"", "0", "-1", "fast", "NaN", "1e7"} {
		w.Options[load.OptionRateScale] = bad
		if _, err := s.Generator.Plan(w); err == nil || !strings.Contains(err.Error(), load.OptionRateScale) {
			t.Errorf("factor %q: %v", bad, err)
		}
	}
}

func testDevices(t *testing.T, s suite) {
	w := s.workload(t, "[global]\nioengine=libaio\ndirect=1\nrw=write\nsize=1m\n[b]\nfilename=/dev/sdb\nbs=4k\n[c]\nfilename=/dev/sdc\nbs=16k\n")
	all, err := s.run(t, t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	CheckIntervals(t, w, all)
	var b, c interval.DeviceCount
	for _, iv := range all {
		b.Operations += iv.Devices["/dev/sdb"][interval.Write].Operations
		c.Operations += iv.Devices["/dev/sdc"][interval.Write].Operations
		c.Bytes += iv.Devices["/dev/sdc"][interval.Write].Bytes
	}
	if all[0].Devices != nil && (b.Operations != 256 || c.Operations != 64 || c.Bytes != 1<<20) {
		t.Errorf("by device: %+v, %+v", b, c)
	}
	if got := changedBlocks(t, w, 1); !slices.Equal(got, count(0, 256)) {
		t.Errorf("%d blocks of /dev/sdc were written", len(got))
	}
}

// On a full disk, errors are counted if continue_on_error allows it; otherwise they end the workload with the device's
// name.
func testDiskFull(t *testing.T, s suite) {
	testreq.Root(t)
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, "mount", "-t", "tmpfs", "-o", "size=2m", "none", dir)
	t.Cleanup(func() { command(t, "umount", dir) })
	s.testFault(t, filepath.Join(dir, "disk"), "rw=write", "ENOSPC")
}

// A device that returns I/O errors: a loop device whose backing file was truncated.
func testBrokenDevice(t *testing.T, s suite) {
	path := filepath.Join(t.TempDir(), "backing")
	if err := os.WriteFile(path, make([]byte, DeviceBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	device := testreq.Loop(t, path)
	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	s.testFault(t, device, "rw=read\ndirect=1", "EIO")
}

// testFault runs a job that goes wrong after its first mebibyte or two.
func (s suite) testFault(t *testing.T, path, options, class string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, DeviceBytes); err != nil {
			t.Fatal(err)
		}
	}
	for _, tolerate := range []string{"all", "none"} {
		w := s.changed(load.Workload{
			Name: "contract", Generator: "under-test", ConfigName: "contract.fio",
			Config:  "[job]\nfilename=/dev/sdb\nbs=64k\nioengine=libaio\niodepth=2\ncontinue_on_error=" + tolerate + "\n" + options + "\n",
			Devices: []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: DeviceBytes}},
		})
		nothingLeft := NothingLeft(t)
		all, err := s.run(t, context.Background(), w)
		nothingLeft()
		CheckIntervals(t, w, all)
		sum := Add(all)
		total := sum.Totals()
		switch {
		case tolerate == "none" && (err == nil || !strings.Contains(err.Error(), "/dev/sdb")):
			t.Errorf("%s without continue_on_error: %v; want an error that names the device", class, err)
		case tolerate == "all" && (err != nil || total.Errors[class] == 0 || total.Operations == 0):
			t.Errorf("%s with continue_on_error=all: %v, %d operations, errors %v", class, err, total.Operations, total.Errors)
		case tolerate == "all" && total.Operations+total.ErrorCount() != DeviceBytes/(64<<10):
			t.Errorf("%s: %d operations and %d errors, want %d together", class, total.Operations, total.ErrorCount(), DeviceBytes/(64<<10))
		case tolerate == "all" && total.Failed != nil && total.Failed.Count() != total.ErrorCount():
			t.Errorf("%s: the times of %d of %d failed operations are known", class, total.Failed.Count(), total.ErrorCount())
		}
	}
}

func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
