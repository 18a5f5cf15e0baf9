package sysbench_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/sysbench"
	"github.com/braggdev/bragg/internal/testreq"
)

const (
	helperDisk    = "BRAGG_SYSBENCH_TEST_DISK"
	helperServer  = "BRAGG_SYSBENCH_TEST_SERVER"
	helperPrefill = "BRAGG_SYSBENCH_TEST_PREFILL"
)

func TestMain(m *testing.M) {
	if disk := os.Getenv(helperDisk); disk != "" {
		if server := os.Getenv(helperServer); server != "" {
			w := load.Workload{Name: "w", Options: tables(server), IntervalLength: 200 * time.Millisecond, Prefill: os.Getenv(helperPrefill) != "",
				Devices: []load.Device{{Name: "/dev/sdb", Path: disk, SizeBytes: 4 << 30}}}
			if w.Prefill {
				w.Options = tables(server, "table_size", "1000000")
			}
			loadtest.BeHelper(sysbench.Generator{}, w)
		}
		loadtest.BeHelper(sysbench.Generator{}, load.Workload{Name: "w", Options: readFiles(), IntervalLength: 200 * time.Millisecond,
			Devices: []load.Device{{Name: "/dev/sdb", Path: disk, SizeBytes: 1 << 30}}})
	}
	os.Exit(m.Run())
}

func needSysbench(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs sysbench")
	}
	testreq.Program(t, "sysbench")
}

// The summary of a newer sysbench has no count of requests, without which a load of files would fail at its end.
func TestFilesNeedCounts(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sysbench"), []byte("#!/bin/sh\necho sysbench 1.1.0-3ceba0b\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	disk := filepath.Join(dir, "disk")
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := load.Workload{Name: "w", Options: readFiles(), Prefill: true, Devices: []load.Device{{Name: "/dev/sdb", Path: disk, SizeBytes: 1 << 30}}}
	if _, err := (sysbench.Generator{}).Prepare(t.Context(), w); err == nil || !strings.Contains(err.Error(), "1.1.0 does not say how many requests") {
		t.Error(err)
	}
}

func readFiles() map[string]string {
	return map[string]string{"test": "fileio", "data": "8MiB", "files": "2", "mode": "rndrd", "block_size": "4KiB"}
}

// prefilled is a workload whose files exist.
func prefilled(t testing.TB, options map[string]string) load.Workload {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "bragg-test-") // direct I/O needs a real file system
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := workload(t, options)
	w.Devices[0].Path = filepath.Join(dir, "sdb")
	if err := os.WriteFile(w.Devices[0].Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.Prefill = true
	if err := loadtest.Drive(t.Context(), sysbench.Generator{}, w, &loadtest.Log{}); err != nil {
		t.Fatal(err)
	}
	w.Prefill = false
	return w
}

func TestContract(t *testing.T) {
	needSysbench(t)
	w := prefilled(t, readFiles())
	loadtest.RunAny(t, loadtest.Subject{Generator: sysbench.Generator{}, LatencyAtEnd: true, Endless: func(testing.TB) load.Workload { return w }})
}

// TestTotals: the totals of intervals are those that sysbench prints itself.
func TestTotals(t *testing.T) {
	needSysbench(t)
	for name, options := range map[string]map[string]string{
		"cpu":     {"test": "cpu", "max_prime": "1000", "threads": "2"},
		"memory":  {"test": "memory", "block_size": "1MiB", "operation": "read"},
		"threads": {"test": "threads", "yields": "100", "threads": "4"},
		"reads":   readFiles(),
		"mixed":   {"test": "fileio", "data": "8MiB", "files": "2", "mode": "rndrw", "block_size": "4KiB", "fsync_every": "20"},
		"flushed": {"test": "fileio", "data": "8MiB", "files": "2", "mode": "seqwr", "fsync_all": "on", "direct": "off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workload(t, options)
			if options["test"] == "fileio" {
				w = prefilled(t, options)
			}
			w.Runtime, w.IntervalLength = 2*time.Second, 250*time.Millisecond
			in, err := sysbench.Generator{}.Prepare(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			var log loadtest.Log
			err = in.Run(t.Context(), &log)
			said := in.(load.Teller).Outputs()[0]
			if err != nil || !said.Valid() {
				t.Fatalf("%v\n%s", err, said.Text)
			}
			own, err := sysbench.ParseSummary(said.Text)
			if err != nil {
				t.Fatal(err)
			}
			all := log.Intervals()
			loadtest.CheckOrder(t, w, all)
			total := loadtest.Add(all).Directions[0]
			if total.Operations != own.Events || own.Events == 0 || total.Service.Count() != own.Events {
				t.Errorf("%d operations with %d latencies, and sysbench reports %d", total.Operations, total.Service.Count(), own.Events)
			}
			if w.Options["fsync_all"] == "on" && total.Bytes != total.Operations*16<<10 || name == "memory" && total.Bytes != total.Operations<<20 ||
				name == "mixed" && (total.Bytes < own.Bytes*99/100 || total.Bytes > own.Bytes*101/100) {
				t.Errorf("%d bytes of %d operations, and sysbench reports about %d", total.Bytes, total.Operations, own.Bytes)
			}
			busy := 0
			for i := range all {
				if all[i].Directions[0].Operations > 0 {
					busy++
				}
			}
			if busy < len(all)/2 {
				t.Errorf("operations in %d of %d intervals", busy, len(all))
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	needSysbench(t)
	w := prefilled(t, readFiles())
	prepare := func(w load.Workload) error {
		in, err := sysbench.Generator{}.Prepare(t.Context(), w)
		if err == nil {
			_ = in.Close()
		}
		return err
	}
	larger := w
	larger.Options = readFiles()
	larger.Options["data"] = "16MiB"
	if err := prepare(larger); err == nil || !strings.Contains(err.Error(), "does not have the 2 files") {
		t.Errorf("files of another size: %v", err)
	}
	first, err := sysbench.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if err := prepare(w); err == nil || !strings.Contains(err.Error(), "another load") {
		t.Errorf("twice at once: %v", err)
	}
	// Files that vanish after they were found.
	if err := os.Remove(filepath.Join(filepath.Dir(w.Devices[0].Path), "sysbench-sdb", "sdb", "test_file.1")); err != nil {
		t.Fatal(err)
	}
	if err := first.Run(t.Context(), &loadtest.Log{}); err == nil || !strings.Contains(err.Error(), "Cannot open file") {
		t.Errorf("without a file: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := prepare(w); err == nil || !strings.Contains(err.Error(), "no sysbench") {
		t.Errorf("without the program: %v", err)
	}
}

// TestProgramDiesWithUs kills a process that runs sysbench, as power off does with an agent.
func TestProgramDiesWithUs(t *testing.T) {
	needSysbench(t)
	w := prefilled(t, readFiles())
	folder := filepath.Join(filepath.Dir(w.Devices[0].Path), "sysbench-sdb")
	users := func() (list []string) {
		links, _ := filepath.Glob("/proc/[0-9]*/cwd")
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, folder) {
				list = append(list, link)
			}
		}
		return list
	}
	loadtest.Orphans(t, []string{helperDisk + "=" + w.Devices[0].Path}, 5, func() {
		if len(users()) != 1 {
			t.Errorf("processes %v run in %s, want sysbench", users(), folder)
		}
	}, users)
	w.Runtime = time.Second
	if err := loadtest.Drive(t.Context(), sysbench.Generator{}, w, &loadtest.Log{}); err != nil {
		t.Errorf("start again: %v", err)
	}
}

func TestFileSystems(t *testing.T) {
	needSysbench(t)
	loadtest.RunFileSystems(t, sysbench.Generator{}, func(t testing.TB) load.Workload {
		w := workload(t, readFiles())
		w.Runtime = 2 * time.Second
		return w
	})
}

// TestHeldOutput runs a sysbench that leaves a process with its output: the load ends nevertheless, and fails.
func TestHeldOutput(t *testing.T) {
	needSysbench(t)
	real, err := exec.LookPath("sysbench")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := "#!/bin/sh\n[ \"$1\" = --version ] || sleep 20 2>&- &\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "sysbench"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	w := workload(t, map[string]string{"test": "cpu"})
	w.Runtime = time.Second
	began := time.Now()
	err = loadtest.Drive(t.Context(), sysbench.Generator{}, w, &loadtest.Log{})
	if err == nil || !strings.Contains(err.Error(), "holds its output") {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
}
