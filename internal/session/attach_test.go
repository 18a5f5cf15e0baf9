package session_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/run"
	"github.com/braggdev/bragg/internal/scenario"
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
`

// Logs of the agents that still run, and what programs of the scenario wrote, are in the bundle and under its seal.
func TestLogsAndOutputAreInTheBundle(t *testing.T) {
	dir, runs := t.TempDir(), filepath.Join(t.TempDir(), "runs")
	job, err := os.ReadFile("testdata/tiny/writes.fio")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"test.yml": attachingScenario, "writes.fio": string(job)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := session.Prepare(t.Context(), session.Order{
		Source: scenario.Source{Path: dir, Trusted: true}, Runs: runs, Target: "local", Program: program(),
		Plan: run.Options{FullPercentMax: 100, AllowShell: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, err := p.Run(t.Context(), session.RunOptions{})
	if err != nil || out.Ended != run.Completed || len(out.Problems) > 0 {
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
	read := func(name string) string {
		f, err := b.Attachment(name)
		if err != nil {
			t.Fatalf("%v; there are %q", err, names)
		}
		defer f.Close()
		text, err := io.ReadAll(f)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	log := read("logs/db-0001.log")
	for _, part := range []string{`of VM "db-0001"`, "Writes 1: running native", "Writes 1: ended\n"} {
		if !strings.Contains(log, part) {
			t.Errorf("%q is missing in the log\n%s", part, log)
		}
	}
	if got := read("output/said.txt"); got != "from the scenario\n" {
		t.Errorf("output %q", got)
	}
	if slices.Contains(names, "logs/db-0002.log") {
		t.Error("the log of a VM whose node is off was collected")
	}
}
