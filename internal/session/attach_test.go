package session_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session"
)

const attachingScenario = `name: attaching
display_name: Attaching
summary: Leaves logs and output in the bundle
description: For tests of what a run keeps.
tags: [test]
estimated_runtime: 1
vms:
  - db:
      template: any
      vcpus: 1
      ram_mb: 256
      data_disks: {count: 1, size: 1}
      nodes: ":2"
      count_per_node: 1
workloads:
  - Writes: {vm_group: db, config_file: writes.fio}
results:
  - IOPS: {vm_group: db, result_type: iops}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: db}
  - vm_group.PowerOn: {vm_group_name: db}
  - experimental.Shell: {cmd: "echo from the scenario > said.txt"}
run:
  - workload.Start: {workload_name: Writes, runtime_secs: 0.3}
  - nodes.PowerOff: {nodes: "1"}
teardown:
  - test.CollectCurieVMLogs: {}
  - experimental.Shell: {cmd: "echo at the end > ended.txt"}
`

// Logs of the agents that still run, and what programs of the scenario wrote, are in the bundle and under its seal.
func TestLogsAndOutputAreInTheBundle(t *testing.T) {
	out, err := runFolder(attachingFolder(t), filepath.Join(t.TempDir(), "runs"), "local", nil)
	if err != nil || out.Ended != executor.Completed || len(out.Problems) > 0 {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	b, err := result.Open(out.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.VerifySeal(); err != nil {
		t.Error(err)
	}
	names, err := b.Attachments()
	if err != nil {
		t.Fatal(err)
	}
	log := attachment(t, b, "logs/db-0001.log")
	for _, part := range []string{`of VM "db-0001"`, "Writes 1: running native", "Writes 1: ended\n"} {
		if !strings.Contains(log, part) {
			t.Errorf("%q is missing in the log\n%s", part, log)
		}
	}
	checkOutput(t, b)
	if slices.Contains(names, "logs/db-0002.log") {
		t.Error("the log of a VM whose node is off was collected")
	}
}

// Programs of a teardown run in the bundle's folder also when their controller died.
func TestOutputOfTeardownAfterDeath(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	dieOf(t, attachingFolder(t), runs, "load.started")
	// The folder could be that of others, who wrote the program into it.
	cleaned, err := session.Clean(t.Context(), session.Cleaning{Runs: runs, Program: program(runs)})
	if err != nil || len(cleaned) != 1 || diag.ExitCode(cleaned[0].Err) != diag.ExitRefused {
		t.Errorf("clean without permission: %+v, %v", cleaned, err)
	}
	if found, err := filepath.Glob(filepath.Join(runs, "2*", "attachments", "output", "ended.txt")); err != nil || len(found) > 0 {
		t.Errorf("a program ran without permission: %v, %v", found, err)
	}
	cleanAll(t, runs, nil)
	checkClean(t, runs, 1)
	all, err := result.List(runs)
	if err != nil || len(all) != 1 {
		t.Fatalf("bundles %+v, %v", all, err)
	}
	b, err := result.Open(all[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.VerifySeal(); err != nil {
		t.Error(err)
	}
	checkOutput(t, b)
}

func attachingFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	job, err := os.ReadFile("testdata/tiny/writes.fio")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"test.yml": attachingScenario, "writes.fio": string(job)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func checkOutput(t *testing.T, b *result.Bundle) {
	t.Helper()
	for name, want := range map[string]string{"said.txt": "from the scenario\n", "ended.txt": "at the end\n"} {
		if got := attachment(t, b, "output/"+name); got != want {
			t.Errorf("output %s: %q", name, got)
		}
	}
}

func attachment(t *testing.T, b *result.Bundle, name string) string {
	t.Helper()
	f, err := b.Attachment(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
