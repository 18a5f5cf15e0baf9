package session_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/lab/labtest"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/testreq"
)

// smallStorage mounts a file system of 128 MiB for the time of the test.
func smallStorage(t *testing.T) string {
	t.Helper()
	testreq.Root(t)
	dir, err := os.MkdirTemp("", "bragg-small")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if err := unix.Mount("small", dir, "tmpfs", 0, "size=128m,mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := unix.Unmount(dir, 0)
		for n := 0; errors.Is(err, unix.EBUSY) && n < 50; n++ { // a child of another test has its files open until it executes its program
			time.Sleep(100 * time.Millisecond)
			err = unix.Unmount(dir, 0)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return dir
}

// intruder writes to a storage when the wait of the run begins, until little is left.
type intruder struct {
	dir string

	mu     sync.Mutex
	err    error
	errors uint64 // of I/O, of all VMs
}

func (*intruder) Begin(*plan.Plan, string) {}
func (i *intruder) Interval(iv interval.Interval) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for d := range iv.Directions {
		i.errors += iv.Directions[d].ErrorCount()
	}
}

func (i *intruder) Event(e interval.Event) {
	if e.Kind != interval.EventStepStarted || e.Step != "test.Wait" {
		return
	}
	var fs unix.Statfs_t
	err := unix.Statfs(i.dir, &fs)
	if err == nil {
		err = os.WriteFile(filepath.Join(i.dir, "foreign"), make([]byte, int64(fs.Bavail)*fs.Bsize-8<<20), 0o600)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
}

// full runs a scenario on a target whose storage an intruder fills, and expects the run to stop for that reason before a
// VM reports an error.
func full(t *testing.T, source scenario.Source, file, dir, where string, p session.Program) {
	t.Helper()
	before := entries(t, dir)
	w := &intruder{dir: dir}
	prepared, err := session.Prepare(t.Context(), session.Order{Source: source, Runs: filepath.Join(t.TempDir(), "runs"), Target: file,
		Plan: planner.Options{FullPercentMax: 100}, Program: p})
	if err != nil {
		t.Fatal(err)
	}
	out, err := prepared.Run(t.Context(), session.RunOptions{Watcher: w})
	if err = errors.Join(err, w.err); err != nil {
		t.Fatal(err)
	}
	if out.Ended != result.EndedFailed || out.Exit != diag.ExitUndecided || len(out.Problems)+len(out.Left) > 0 || w.errors > 0 {
		t.Errorf("%d errors of I/O, outcome %+v", w.errors, out)
	}
	for _, want := range []string{"only ", " of 128 MiB are free in " + where, "and 16 MiB have to stay free", "free some space there"} {
		if !strings.Contains(out.Reason, want) {
			t.Errorf("the reason is %q, want %q", out.Reason, want)
		}
	}
	for _, e := range entries(t, dir) {
		if e != "foreign" && !slices.Contains(before, e) {
			t.Errorf("%q is left", e)
		}
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

const fullScenario = `name: full
display_name: Full
summary: Another writer fills the storage
description: For tests of what stops a run.
tags: [test]
estimated_runtime: 1
vms:
  - db: {template: blank, vcpus: 1, ram_mb: 64, data_disks: {count: 1, size: 1}, nodes: ":2", count_per_node: 1}
workloads: WORKLOADS
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: db}
run: STEPS
  - test.Wait: {duration_secs: 3000}
teardown:
  - cluster.CleanUp: {}
`

func fullSource(workloads, steps string) scenario.Source {
	text := strings.NewReplacer("WORKLOADS", workloads, "STEPS", steps).Replace(fullScenario)
	return scenario.Source{Name: "full", Trusted: true, FS: fstest.MapFS{
		"test.yml":   {Data: []byte(text)},
		"writes.fio": {Data: []byte("[writes]\nfilename=/dev/sdb\nrw=randwrite\nbs=4k\nsize=4m\nrate_iops=50\ntime_based\n")},
	}}
}

// TestFolderOfHostsFills: another writer fills the file system of the hosts' folder while VMs write.
func TestFolderOfHostsFills(t *testing.T) {
	h := newHosts(t)
	dir := smallStorage(t)
	source := fullSource("[Writes: {vm_group: db, config_file: writes.fio}]", `
  - vm_group.PowerOn: {vm_group_name: db}
  - workload.Start: {workload_name: Writes, runtime_secs: 3000, async: True}`)
	full(t, source, h.TargetFile(t, dir), dir, `the file system of "`+dir+`" of nodes `, program(t.TempDir()))
}

// TestPoolOfHypervisorsFills: the same with a pool of libvirt that two hosts share. That its volumes belong to guests which boot
// nothing makes no difference for the pool.
func TestPoolOfHypervisorsFills(t *testing.T) {
	if testing.Short() {
		t.Skip("a lab of two hosts")
	}
	image := testreq.Program(t, "qemu-img")
	dir := smallStorage(t) // hosts have the mounts of the moment in which they are made
	blank := filepath.Join(t.TempDir(), "blank.qcow2")
	command(t, image, "create", "-q", "-f", "qcow2", blank, "1M")
	// Seeds contain an agent binary, which is never started.
	agents := t.TempDir()
	if err := os.WriteFile(filepath.Join(agents, "bragg-agent"), []byte("no guest boots"), 0o700); err != nil {
		t.Fatal(err)
	}
	l := labtest.New(t, lab.Options{Templates: map[string]string{"blank": blank}})
	for _, h := range l.Hosts {
		command(t, "virsh", "-q", "-c", h.URI(), "pool-define-as", "small", "dir", "--target", dir)
		command(t, "virsh", "-q", "-c", h.URI(), "pool-start", "small")
	}
	command(t, "cp", filepath.Join(l.PoolDir(), "template-blank"), dir)
	text := l.TargetFiles()[0].Text
	for old, changed := range map[string]string{"options:\n": "options:\n  accelerator: tcg\n", `pool: "lab"`: `pool: "small"`} {
		if !strings.Contains(text, old) {
			t.Fatalf("the target file has no %q", old)
		}
		text = strings.Replace(text, old, changed, 1)
	}
	file := filepath.Join(t.TempDir(), "target.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := program(t.TempDir())
	p.AgentDir = agents
	full(t, fullSource("[]", ""), file, dir, `pool "small" of nodes `, p)
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
}
