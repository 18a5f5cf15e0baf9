package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load/hammerdb"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/testreq"
)

// killedLoad is a small load of a generator that lasts until it is killed.
type killedLoad struct {
	generator, options string
	config             string // text of its config_file
	prefill            bool
	programs           []string // which run while it does, by their names
}

// suffix is that of the file with its config.
func (l killedLoad) suffix() string {
	if l.generator == "vdbench" {
		return "parm"
	}
	return "fio"
}

// killedLoads are loads of all generators.
var killedLoads = []killedLoad{
	{generator: "native", config: "[global]\nrw=randrw\nbs=4k\nsize=8m\n[j]\nfilename=/dev/sdb\n", prefill: true},
	{generator: "fio", config: "[global]\nrw=randrw\nbs=4k\nsize=8m\n[j]\nfilename=/dev/sdb\n", prefill: true, programs: []string{"fio"}},
	{generator: "pgbench", options: "{scale: 1, clients: 2, rate: 20}", prefill: true, programs: []string{"postgres", "pgbench"}},
	{generator: "hammerdb", options: "{warehouses: 1, users: 1}", prefill: true, programs: []string{"postgres", "psql"}}, // played, as in its package
	{generator: "mlperf_storage", options: "{model: unet3d, files: 20, batch_size: 2, record_length: 64KiB, computation_time: 20ms, epochs: 1000}", prefill: true},
	{generator: "redis", options: "{keys: 1000, appendonly: 'yes'}", prefill: true, programs: []string{"redis-server", "redis-benchmark"}},
	{generator: "stream", options: "{array: 1MiB}"},
	{generator: "sysbench", options: "{test: oltp_read_write, server: mariadb, tables: 1, table_size: 1000, rate: 10}", prefill: true,
		programs: []string{"mariadbd", "sysbench"}},
	{generator: "vdbench", config: "fsd=fsd1,anchor=/dev/sdb,depth=1,width=2,files=4,size=64k\nfwd=fwd1,fsd=fsd1,operation=write,xfersize=4k,fileio=random,threads=2\n" +
		"rd=rd1,fwd=fwd1,fwdrate=100,format=yes,elapsed=1000,interval=1\n"},
	{generator: "memory_latency", options: "{sizes: 4KiB}"},
	{generator: "vioperf", options: "{threads: 1, buffer: 64KiB, data: 8MiB}"},
	{generator: "commit_latency", prefill: true, programs: []string{"postgres"}},
	{generator: "iperf3", options: "{bitrate: 1M}", programs: []string{"iperf3"}},
}

// TestKilledLoadsAreCleaned kills the program while a load of each generator runs. Agents notice that by themselves, and no process
// of a load stays; bragg clean removes data, databases and what else is outside the bundle.
func TestKilledLoadsAreCleaned(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	for _, name := range []string{"fio", "pgbench", "redis-server", "sysbench", "mariadbd", "iperf3"} {
		testreq.Program(t, name)
	}
	for _, kind := range session.Catalog().Generators {
		if !slices.ContainsFunc(killedLoads, func(l killedLoad) bool { return l.generator == kind.Name }) {
			t.Errorf("no load of generator %q is killed", kind.Name)
		}
	}
	// A run has one of the two engines for job files.
	native := slices.DeleteFunc(slices.Clone(killedLoads), func(l killedLoad) bool { return l.generator == "fio" })
	fio := slices.DeleteFunc(slices.Clone(killedLoads), func(l killedLoad) bool { return l.generator != "fio" })
	for name, loads := range map[string][]killedLoad{"native": native, "fio": fio} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killLoads(t, loads)
		})
	}
}

func killLoads(t *testing.T, loads []killedLoad) {
	scratch, err := os.MkdirTemp("/var/tmp", "bragg-test-") // users of servers reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(scratch) })
	if err := os.Chmod(scratch, 0o755); err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(scratch, "runs")
	played, err := filepath.Abs("../load/hammerdb/testdata/played")
	if err != nil {
		t.Fatal(err)
	}
	b := startBragg(t, func(c *exec.Cmd) { c.Env = append(c.Env, hammerdb.HomeVariable+"="+played) }, "run", killedScenario(t, loads), "--runs", runs)
	var before []process
	for hang := time.Now().Add(hangGuard); !waiting(runs) || len(missing(loads, before)) > 0; time.Sleep(100 * time.Millisecond) {
		before = descendants(t, b.Process.Pid)
		if b.ended() || time.Now().After(hang) {
			t.Fatalf("not all loads run; no processes of %q\n%s", missing(loads, before), b.out.String())
		}
	}
	var shared []string
	for _, p := range before {
		shared = append(shared, p.sharedFiles()...)
	}
	if err := b.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatalf("the run ended before it was killed: %v\n%s", err, b.out.String())
	}
	_ = b.exitCode(t)
	hang := time.Now().Add(hangGuard)
	for left := before; len(left) > 0 || len(loadtest.Users(t, scratch)) > 0; time.Sleep(20 * time.Millisecond) {
		if left = slices.DeleteFunc(left, func(p process) bool { return !p.lives() }); time.Now().After(hang) {
			t.Fatalf("processes outlive the program: %v, %v", left, loadtest.Users(t, scratch))
		}
	}
	checkSharedMemory(t, before, shared)
	checkNothingLeft(t, runs, mustRun(t, 0, "clean", "--runs", runs))
	if entries, err := os.ReadDir(scratch); err != nil || len(entries) != 1 {
		t.Errorf("beside the runs: %v, %v", entries, err)
	}
	reportSealed(t, runs)
}

// killedScenario writes a scenario in which all loads run at the same time, each in a group of its own.
func killedScenario(t *testing.T, list []killedLoad) string {
	t.Helper()
	dir := t.TempDir()
	var groups, loads, setup, filled, run strings.Builder
	for i, l := range list {
		fmt.Fprintf(&groups, "  - g%d: {template: ubuntu1604, vcpus: 1, ram_mb: 256, data_disks: {count: 1, size: 4}, nodes: '0', count_per_node: 1}\n", i)
		fmt.Fprintf(&loads, "  - W%d:\n      vm_group: g%d\n      generator: %s\n", i, i, l.generator)
		if l.options != "" {
			fmt.Fprintf(&loads, "      options: %s\n", l.options)
		}
		if l.config != "" {
			name := fmt.Sprintf("w%d.%s", i, l.suffix())
			fmt.Fprintf(&loads, "      config_file: %s\n", name)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(l.config), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if l.generator == "iperf3" {
			fmt.Fprintf(&loads, "      server_group: g0\n")
		}
		fmt.Fprintf(&setup, "  - vm_group.CloneFromTemplate: {vm_group_name: g%d, power_on: True}\n", i)
		if l.prefill {
			fmt.Fprintf(&setup, "  - workload.PrefillStart: {workload_name: W%d, async: True}\n", i)
			fmt.Fprintf(&filled, "  - workload.PrefillWait: {workload_name: W%d}\n", i)
		}
		fmt.Fprintf(&run, "  - workload.Start: {workload_name: W%d, runtime_secs: 600, async: True}\n", i)
	}
	text := "name: killed\ndisplay_name: Killed\nsummary: A load of every generator\ndescription: For the test of what is left.\nestimated_runtime: 600\nvms:\n" +
		groups.String() + "workloads:\n" + loads.String() + "results:\n  - IOPS: {vm_group: g0, result_type: iops}\nsetup:\n" + setup.String() + filled.String() + "run:\n" + run.String() +
		"  - test.Wait: {duration_secs: 600}\nteardown:\n  - cluster.CleanUp: {}\n"
	if err := os.WriteFile(filepath.Join(dir, "test.yml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// waiting reports whether the run has started all loads and waits.
func waiting(runs string) bool {
	journals, _ := filepath.Glob(filepath.Join(runs, "*", "events.ndjson"))
	if len(journals) != 1 {
		return false
	}
	text, err := os.ReadFile(journals[0])
	return err == nil && strings.Contains(string(text), `"step":"test.Wait"`)
}

// missing lists programs of loads of which there is no process.
func missing(loads []killedLoad, list []process) (names []string) {
	for _, l := range loads {
		for _, program := range l.programs {
			if !slices.ContainsFunc(list, func(p process) bool { return p.name == program[:min(len(program), 15)] }) {
				names = append(names, program)
			}
		}
	}
	return names
}

// process is one process of the run.
type process struct {
	id, name, started string
}

// readProcess returns a process and its parent; ok is false if it has ended.
func readProcess(id string) (p process, parent string, ok bool) {
	text, err := os.ReadFile(filepath.Join("/proc", id, "stat"))
	if err != nil {
		return p, "", false
	}
	front, rest, found := strings.Cut(string(text), " (")
	last := strings.LastIndex(rest, ") ")
	if !found || last < 0 {
		return p, "", false
	}
	fields := strings.Fields(rest[last+2:]) // state ppid … and the start time as the 20th
	if len(fields) < 20 || fields[0] == "Z" {
		return p, "", false
	}
	return process{id: front, name: rest[:last], started: fields[19]}, fields[1], true
}

func (p process) String() string { return p.id + " " + p.name }

func (p process) lives() bool {
	now, _, ok := readProcess(p.id)
	return ok && now.started == p.started
}

// descendants lists the children of a process, their children, and so on.
func descendants(t *testing.T, of int) (list []process) {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	children := map[string][]process{}
	for _, e := range entries {
		if p, parent, ok := readProcess(filepath.Base(e)); ok {
			children[parent] = append(children[parent], p)
		}
	}
	next := children[strconv.Itoa(of)]
	for len(next) > 0 {
		p := next[0]
		list, next = append(list, p), append(next[1:], children[p.id]...)
	}
	return list
}

// sharedFiles lists what the process has mapped of /dev/shm.
func (p process) sharedFiles() (list []string) {
	maps, _ := os.ReadFile(filepath.Join("/proc", p.id, "maps"))
	for line := range strings.Lines(string(maps)) {
		if _, name, ok := strings.Cut(line, " /dev/shm/"); ok {
			list = append(list, "/dev/shm/"+strings.TrimSpace(name))
		}
	}
	return list
}

// checkSharedMemory looks for files of /dev/shm and for System V segments of processes that have ended.
func checkSharedMemory(t *testing.T, ended []process, files []string) {
	t.Helper()
	for _, path := range files {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("shared memory is left: %s", path)
		}
	}
	text, err := os.ReadFile("/proc/sysvipc/shm") // key shmid perms size cpid …
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 4 && slices.ContainsFunc(ended, func(p process) bool { return p.id == f[4] }) {
			t.Errorf("a segment of shared memory is left: %s", line)
		}
	}
}
