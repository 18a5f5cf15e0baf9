package builtin_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/builtin"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/testreq"
)

const helperLoad = "BRAGG_BUILTIN_TEST_LOAD"

// TestMain is an agent with one load, if the parent of this process wants that.
func TestMain(m *testing.M) {
	if text := os.Getenv(helperLoad); text != "" {
		var w load.Workload
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		loadtest.BeHelper(builtin.Generators().ByName()[w.Generator], w)
	}
	os.Exit(m.Run())
}

// inAgent are loads that run in the agent itself: threads, files and memory, without other programs.
var inAgent = []load.Workload{
	{Name: "blocks", Generator: "native", Config: "[j]\nfilename=/dev/sdb\nsize=4m\nrw=randrw\nbs=4k\niodepth=4\ntime_based=1\nruntime=1000\n"},
	{Name: "bandwidth", Generator: "stream", Options: map[string]string{"array": "1MiB"}},
	{Name: "latency", Generator: "memory_latency", Options: map[string]string{"sizes": "4KiB 64KiB"}},
	{Name: "vertica", Generator: "vioperf", Options: map[string]string{"threads": "2", "buffer": "64KiB", "data": "8MiB"}},
	{Name: "training", Generator: "mlperf_storage", Options: map[string]string{"model": "unet3d", "files": "20", "batch_size": "2", "accelerators": "2",
		"record_length": "64KiB", "computation_time": "10ms", "epochs": "1000"}},
	{Name: "checkpoints", Generator: "mlperf_storage", Options: map[string]string{"checkpoint": "llama3-8b", "fraction": "0.00001", "checkpoints": "1000", "ranks": "1"}},
	{Name: "raw", Generator: "vdbench", Config: "sd=sd1,lun=/dev/sdb,size=4m,openflags=o_direct\nwd=wd1,sd=sd1,xfersize=4k,rdpct=50\nrd=rd1,wd=wd1,iorate=max,elapsed=1000,interval=1\n"},
	{Name: "tree", Generator: "vdbench", Config: "fsd=fsd1,anchor=/dev/sdb,depth=1,width=2,files=4,size=64k\n" +
		"fwd=fwd1,fsd=fsd1,operation=write,xfersize=4k,fileio=random,threads=2\nrd=rd1,fwd=fwd1,fwdrate=max,format=yes,elapsed=1000,interval=1\n"},
}

// Every generator has a test of what is left when its agent is killed: here, or with its programs in its own package.
func TestEveryGeneratorIsKilled(t *testing.T) {
	for _, kind := range builtin.Generators() {
		if slices.ContainsFunc(inAgent, func(w load.Workload) bool { return w.Generator == kind.Name }) {
			continue
		}
		found := false
		tests, _ := filepath.Glob(filepath.Join("..", strings.ReplaceAll(kind.Name, "_", ""), "*_test.go"))
		for _, path := range tests {
			text, err := os.ReadFile(path)
			found = found || err == nil && strings.Contains(string(text), "loadtest.Orphans(")
		}
		if !found {
			t.Errorf("no test kills the agent of generator %q", kind.Name)
		}
	}
}

// After kill -9 of the agent no process and no memory is left, files are only beside the disk, and the next load leaves as much as one before
// which nothing was killed.
func TestKilledAgentLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, w := range inAgent {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			killed(t, w)
		})
	}
}

func killed(t *testing.T, w load.Workload) {
	dir := t.TempDir()
	disk, temporary := filepath.Join(dir, "vm", "sdb"), filepath.Join(dir, "tmp")
	for _, d := range []string{filepath.Dir(disk), temporary} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.Devices = []load.Device{{Name: "/dev/sdb", Path: disk, SizeBytes: 64 << 20}}
	if err := os.WriteFile(disk, make([]byte, w.Devices[0].SizeBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	w.VM, w.Group, w.Seed, w.IntervalLength = "vm-0001", "vm", 42, 50*time.Millisecond
	if w.Config != "" {
		w.ConfigName = "load.txt"
	}
	usual := next(t, w)
	here := files(t, ".")
	w.Runtime = time.Hour
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	var agent string
	var shared []string
	loadtest.Orphans(t, []string{helperLoad + "=" + string(text), "TMPDIR=" + temporary}, 4, func() {
		ids := testreq.ProcessesNaming(t, disk)
		if len(ids) != 1 {
			t.Errorf("processes %q, want the agent alone", ids)
			return
		}
		agent, _, _ = strings.Cut(ids[0], " ")
		shared = sharedFiles(t, agent)
	}, func() []string { return testreq.ProcessesNaming(t, disk) })
	shared = slices.DeleteFunc(shared, func(path string) bool { _, err := os.Stat(path); return err != nil })
	if shared = append(shared, segments(t, agent)...); len(shared) > 0 {
		t.Errorf("shared memory is left: %q", shared)
	}
	if left := append(files(t, temporary), mounts(t, dir)...); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if now := files(t, "."); !slices.Equal(now, here) {
		t.Errorf("files in the working folder: %q, and before %q", now, here)
	}
	if again := next(t, w); !slices.Equal(again, usual) {
		t.Errorf("after the next load there are %q, want %q", again, usual)
	}
}

// next prefills and runs a load for a short time, and returns which files are beside the disk then.
func next(t *testing.T, w load.Workload) []string {
	t.Helper()
	g := builtin.Generators().ByName()[w.Generator]
	for _, prefill := range []bool{true, false} {
		w.Prefill, w.Runtime = prefill, 200*time.Millisecond
		if prefill {
			w.Runtime = 0
			if w.Generator == "native" || w.Generator == "vdbench" {
				continue // the disk is full already
			}
		}
		if err := loadtest.Drive(t.Context(), g, w, &loadtest.Log{}); err != nil {
			t.Fatalf("prefill %t: %v", prefill, err)
		}
	}
	return files(t, filepath.Dir(w.Devices[0].Path))
}

// files lists those below a folder.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// sharedFiles lists what a process has mapped of /dev/shm.
func sharedFiles(t *testing.T, id string) (list []string) {
	t.Helper()
	maps, err := os.ReadFile(filepath.Join("/proc", id, "maps"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if _, name, ok := strings.Cut(line, " /dev/shm/"); ok {
			list = append(list, "/dev/shm/"+strings.TrimSpace(name))
		}
	}
	return list
}

// segments lists System V shared memory that a process made.
func segments(t *testing.T, id string) (list []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/sysvipc/shm") // key shmid perms size cpid …
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == id {
			list = append(list, line)
		}
	}
	return list
}

// mounts lists mounts and loop devices that are on files of a folder.
func mounts(t *testing.T, dir string) (list []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, dir) {
			list = append(list, line)
		}
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, loop := range loops {
		if text, err := os.ReadFile(loop); err == nil && strings.HasPrefix(string(text), dir) {
			list = append(list, loop)
		}
	}
	return list
}
