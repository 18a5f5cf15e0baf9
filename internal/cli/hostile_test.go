package cli_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hostileScenario has names that are dangerous as paths, in a shell, and in HTML, as far as scenarios may have them.
const hostileScenario = `
name: hostile
display_name: "'; rm -rf / #<b>"
summary: "<img src=x onerror=alert(1)>"
description: "</script><script>alert(2)</script>"
tags: ["<b>", "$(touch pwned)"]
estimated_runtime: 1
vms:
  - "../<b>$(id)'é":
      template: "../../tmpl $(touch pwned)"
      vcpus: 1
      ram_mb: 128
      data_disks: {count: 1, size: 1}
      nodes: "0"
workloads:
  - "../w<script>alert(3)</script>":
      vm_group: "../<b>$(id)'é"
      config_file: load.fio
results:
  - "r</script><script>alert(4)</script>":
      vm_group: "../<b>$(id)'é"
      result_type: iops
setup:
  - vm_group.CloneFromTemplate:
      vm_group_name: "../<b>$(id)'é"
  - vm_group.PowerOn:
      vm_group_name: "../<b>$(id)'é"
run:
  - workload.Start:
      workload_name: "../w<script>alert(3)</script>"
      runtime_secs: 1
`

// writeScenario makes a scenario folder.
func writeScenario(t *testing.T, dir, text string) {
	t.Helper()
	job := "[a]\nfilename=/dev/sdb\nioengine=libaio\ndirect=1\nrw=randread\nbs=4k\nsize=1m\ntime_based\n"
	err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "test.yml"), []byte(text), 0o600),
		os.WriteFile(filepath.Join(dir, "load.fio"), []byte(job), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// controlCodes are bytes that a terminal acts on.
const controlCodes = "\x1b\a\b"

func TestHostileNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place := filepath.Join(dir, "-- $(touch pwned) \x1b[31m ;é")
	writeScenario(t, place, hostileScenario)
	runs := filepath.Join(dir, "runs <b>\x1b[31m")
	b := startBragg(t, func(c *exec.Cmd) { c.Dir = dir }, "run", "--runs", runs, "--max-full", "100", "--", place)
	if code := b.exitCode(t); code != 0 && code != 3 { // a busy machine may leave the run undecided
		t.Fatalf("exit code %d\n%s", code, b.out.String())
	}
	if strings.ContainsAny(b.out.String(), controlCodes) {
		t.Errorf("control codes reach the terminal: %q", b.out.String())
	}
	checkNothingLeft(t, runs, b.out.String())
	reportSealed(t, runs)
	for _, name := range filesOf(t, dir) {
		if strings.Contains(name, "pwned") && !strings.HasPrefix(name, filepath.Base(place)) {
			t.Errorf("a name was executed: %s", name)
		}
	}
	pages, err := filepath.Glob(filepath.Join(dir, "runs*", "2*", "report.html"))
	if err != nil || len(pages) != 1 {
		t.Fatal(pages, err)
	}
	page, err := os.ReadFile(pages[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script>alert", "<img src=x", "\x1b"} {
		if bytes.Contains(page, []byte(bad)) {
			t.Errorf("the report holds %q", bad)
		}
	}
}

func TestNamesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, new string }{
		{"name: hostile", `name: "../../etc"`},
		{"name: hostile", `name: "a\e[31m"`},
		{"../w<script>", `../w\e[2J<script>`},
		{"  - \"r</script>", `  - "\ar</script>`},
	} {
		dir := filepath.Join(t.TempDir(), "\x1b]0;title\a")
		writeScenario(t, dir, strings.ReplaceAll(hostileScenario, c.old, c.new))
		said := mustRun(t, 65, "run", "--runs", t.TempDir(), "--", dir)
		if strings.ContainsAny(said, controlCodes) {
			t.Errorf("%s: control codes reach the terminal: %q", c.new, said)
		}
	}
}
