package cli_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
)

// The names below a runs folder that Bragg writes; RUN stands for the folder of a run. Names in a finished and in a dead run that the
// test does not know make it fail.
var (
	sealedNames = []string{
		"RUN", "RUN/report.html", "RUN/report-redacted.html", "RUN/manifest.json", "RUN/plan.json", "RUN/events.ndjson", "RUN/intervals.ndjson.zst",
		"RUN/rollups.ndjson.zst", "RUN/samples.ndjson.zst", "RUN/summary.json", "RUN/seal.json", "RUN/attachments", "RUN/metrics",
		"RUN/metrics/blocks-complete", "RUN/metrics/chunks_head", "RUN/metrics/lock", "RUN/metrics/wal", "RUN/metrics/*/index",
		"baselines.json", ".control", ".control/controller", ".control/lease-fake",
	}
	deadNames = []string{
		"RUN", "RUN/report.html", "RUN/manifest.json", "RUN/plan.json", "RUN/events.ndjson", "RUN/intervals.ndjson.zst", "RUN/rollups.ndjson.zst",
		"RUN/samples.ndjson.zst", "RUN/summary.json", "RUN/seal.json", "RUN/.reserve", "RUN/attachments", "RUN/metrics", "RUN/metrics/chunks_head", "RUN/metrics/lock", "RUN/vms", "RUN/vms/*.owner",
		"RUN/vms/nodes-off.json", "RUN/vms/nodes-off.json.new", "RUN/vms/*/agent.log", "RUN/vms/*/vm.json", "RUN/vms/*/sdb",
		".control", ".control/controller", ".control/lease-local", ".control/lease-local.target", ".control/RUN.journal", ".control/RUN.private",
	}
)

const quickScenario = `
name: quick
display_name: Quick
summary: One second of load
description: For tests of what is beside a run.
tags: [test]
estimated_runtime: 1
vms:
  - db: {template: ubuntu1604, vcpus: 1, ram_mb: 128, data_disks: {count: 1, size: 1}, nodes: "0", count_per_node: 1}
workloads:
  - Load: {vm_group: db, config_file: load.fio}
results:
  - IOPS: {vm_group: db, result_type: iops}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: db}
  - vm_group.PowerOn: {vm_group_name: db}
run:
  - workload.Start: {workload_name: Load, runtime_secs: 1}
`

// TestNothingIsWrittenThroughForeignFiles puts a link, a second name of a file, a pipe, an empty file and a folder into the place of everything that
// Bragg writes into folders that others may have made. The file or folder behind it, which has the content that Bragg expects, stays as it
// is, and no command waits for a pipe or calls it a defect of its own.
func TestNothingIsWrittenThroughForeignFiles(t *testing.T) {
	t.Parallel()
	sealed := filepath.Join(t.TempDir(), "runs")
	quick := filepath.Join(t.TempDir(), "quick")
	writeScenario(t, quick, quickScenario)
	first := startBragg(t, nil, "run", quick, "--target", "fake:2", "--runs", sealed)
	if code := first.exitCode(t); code != 0 && code != 3 { // a busy machine may leave the run undecided
		t.Fatalf("exit code %d\n%s", code, first.out.String())
	}
	dead := filepath.Join(t.TempDir(), "runs")
	b := startBragg(t, nil, outageArguments(dead, 0)...)
	awaitEvent(t, b, dead, nodeIsOff)
	if err := b.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = b.exitCode(t)
	checkKnown(t, sealed, sealedNames)
	checkKnown(t, dead, deadNames)
	for _, c := range []struct {
		name, template string
		names          []string
		commands       [][]string
	}{
		{"sealed", sealed, sealedNames, [][]string{
			{"report", "last"}, {"report", "last", "--redact"}, {"query", "last", "bragg_operations_total"}, {"baseline", "set", "last"},
			{"clean"},
		}},
		{"another run", sealed, sealedNames[slices.Index(sealedNames, "baselines.json"):], [][]string{{"run", quick, "--target", "fake:2"}}},
		{"dead", dead, deadNames, [][]string{{"clean"}, {"clean"}, {"report", "last"}}},
		{"resumed", dead, deadNames[:3], [][]string{{"resume"}}},
	} {
		for _, name := range c.names {
			for _, plant := range plants {
				t.Run(c.name+"/"+name+"/"+plant.name, func(t *testing.T) {
					t.Parallel()
					foreign(t, c.template, name, plant, c.commands)
				})
			}
		}
	}
}

// plants are what may be in the place of a file or folder. Each moves what is there to outside, if it can.
var plants = []struct {
	name string
	make func(path, outside string) error
}{
	{"link", func(path, outside string) error { return os.Symlink(outside, path) }},
	{"hard link", func(path, outside string) error { return os.Link(outside, path) }},
	{"pipe", func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }},
	{"file", func(path, _ string) error { return os.WriteFile(path, nil, 0o600) }},
	{"folder", func(path, _ string) error { return os.MkdirAll(filepath.Join(path, "kept"), 0o700) }},
}

func foreign(t *testing.T, template, name string, plant struct {
	name string
	make func(path, outside string) error
}, commands [][]string) {
	dir := t.TempDir()
	runs, outside := filepath.Join(dir, "runs"), filepath.Join(dir, "outside", "file")
	if out, err := exec.Command("cp", "-a", template, runs).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Mkdir(filepath.Dir(outside), 0o700); err != nil {
		t.Fatal(err)
	}
	path := placeOf(t, runs, name)
	if err := os.Rename(path, outside); err != nil { // Bragg has not written it yet
		if err := os.WriteFile(outside, []byte("not Bragg's\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(outside); err == nil && info.IsDir() && (plant.name == "hard link" || plant.name == "folder") {
		return // a folder has one name, and one in its place is as good
	}
	if err := plant.make(path, outside); err != nil {
		t.Fatal(err)
	}
	before := contentOf(t, filepath.Dir(outside))
	for _, c := range commands {
		code, _, errs := inProcess(t, append(slices.Clone(c), "--runs", runs)...)
		if code == diag.ExitInternal || strings.Contains(errs, "internal error") {
			t.Errorf("%s: exit code %d: %s", c[0], code, errs)
		}
		if after := contentOf(t, filepath.Dir(outside)); after != before {
			t.Fatalf("%s changed\n%sinto\n%s%s", c[0], before, after, errs)
		}
	}
}

// placeOf is the path of a name in a runs folder with one run.
func placeOf(t *testing.T, runs, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(runs, "2*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v: %v", found, err)
	}
	path := filepath.Join(runs, strings.ReplaceAll(name, "RUN", filepath.Base(found[0])))
	if !strings.Contains(path, "*") {
		return path
	}
	if found, err = filepath.Glob(path); err != nil || len(found) == 0 {
		t.Fatalf("%s: none", path)
	}
	return found[0]
}

// TestDoctorCreatesNothingElsewhere: what doctor tries in a runs folder it tries with new files.
func TestDoctorCreatesNothingElsewhere(t *testing.T) {
	t.Parallel()
	runs, outside := t.TempDir(), t.TempDir()
	planted := filepath.Join(runs, ".doctor-direct") // a name that is easy to guess
	if err := os.Symlink(filepath.Join(outside, "fresh"), planted); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := inProcess(t, "doctor", "--runs", runs); code == diag.ExitInternal {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if after := contentOf(t, outside); strings.Count(after, "\n") != 1 {
		t.Errorf("created outside of the runs folder:\n%s", after)
	}
	if _, err := os.Lstat(planted); err != nil {
		t.Errorf("a file of others was removed: %v", err)
	}
}

// TestLockOfOthersIsReported: who may enter a runs folder can lock what is in it, and no command waits for that, or calls it a defect.
func TestLockOfOthersIsReported(t *testing.T) {
	t.Parallel()
	runs := filepath.Join(t.TempDir(), "runs")
	quick := filepath.Join(t.TempDir(), "quick")
	writeScenario(t, quick, quickScenario)
	first := startBragg(t, nil, "run", quick, "--target", "fake:2", "--runs", runs)
	_ = first.exitCode(t)
	release, err := durable.LockDir(placeOf(t, runs, "RUN"), syscall.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if code, _, errs := inProcess(t, "report", "last", "--runs", runs); code != diag.ExitLocked || !strings.Contains(errs, "another process holds the lock") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// contentOf describes all files below a folder. That of a run that goes on, or of a journal that is read, may get other times of access only.
func contentOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %v", strings.TrimPrefix(path, dir), info.Mode(), info.ModTime())
		if info.Mode().IsRegular() && info.Size() < 1<<24 {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %d %x", info.Size(), sha256.Sum256(text))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// checkKnown wants all that is directly in the folders that Bragg writes to be among the names.
func checkKnown(t *testing.T, runs string, names []string) {
	t.Helper()
	run := filepath.Base(placeOf(t, runs, "RUN"))
	for _, dir := range []string{"", ".control", run, filepath.Join(run, "vms"), filepath.Join(run, "metrics")} {
		entries, _ := os.ReadDir(filepath.Join(runs, dir))
		for _, e := range entries {
			name := strings.ReplaceAll(filepath.Join(dir, e.Name()), run, "RUN")
			known := slices.ContainsFunc(names, func(pattern string) bool {
				matched, err := filepath.Match(pattern, name)
				below, _ := filepath.Match(filepath.Dir(pattern), name)
				return matched || below || err != nil
			})
			if !known {
				t.Errorf("%s is written, and not tested", name)
			}
		}
	}
}
