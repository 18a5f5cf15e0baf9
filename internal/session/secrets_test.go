package session_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
)

const secretiveScenario = `name: secretive
display_name: Secretive
summary: Holds secrets
description: For tests of what a bundle holds.
tags: [test]
estimated_runtime: 1
vars:
  db_password: {default: hunter2default}
  api_key: {default: "key-of-the-door", options: ["key-of-the-door", "another-key"]}
  quoted_password: {default: 'hand"le<&\x O''Neil'}
  tokens_per_second: {default: 5000}
vms:
  - db:
      template: any
      vcpus: 1
      ram_mb: 256
      data_disks: {count: 1, size: 1}
      count_per_node: 1
workloads:
  - Writes: {vm_group: db, config_file: writes.fio}
results:
  - IOPS: {vm_group: db, result_type: iops}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: db}
  - vm_group.PowerOn: {vm_group_name: db}
  - experimental.Shell: {cmd: "echo {{ api_key }} of {{ tokens_per_second }}"}
  - experimental.Shell: {cmd: {{ ("cat <<'END'\n" ~ quoted_password ~ "\nEND\n") | tojson }}}
PLAYBOOK
run:
  - workload.Start: {workload_name: Writes, runtime_secs: 0.2}
teardown:
  - cluster.CleanUp: {}
`

const secretPlaybook = `  - playbook.Run:
      filename: site.yml
      inventory: [db]
      remote_user: root
      remote_pass: "opensesame"
      variables: {list: [{sudo_pass: "nested-one"}], url: "http://hunter2given@host/"}
  - meta.Repeat:
      count: 1
      steps:
        - playbook.Run:
            filename: site.yml
            inventory: [db]
            remote_user: root
            remote_pass: "wideopen-below"
`

// No secret of a scenario is written to its bundle, wherever it occurs; values that are not secret stay readable.
func TestNoSecretInTheBundle(t *testing.T) {
	for where, playbook := range map[string]string{"local": "", "fake:2": secretPlaybook} {
		t.Run(where, func(t *testing.T) {
			dir := t.TempDir()
			job, err := os.ReadFile("testdata/tiny/writes.fio")
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{
				"test.yml":   strings.Replace(secretiveScenario, "PLAYBOOK\n", playbook, 1),
				"writes.fio": string(job), "site.yml": "# log in with opensesame\n- hosts: all\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out := runSecretive(t, dir, where)
			checkNoSecrets(t, out.Dir)
			b, err := result.Open(out.Dir)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			v := b.Manifest().Scenario.Variables
			if v["db_password"] != "***" || v["api_key"] != "***" || v["tokens_per_second"] != "5000" {
				t.Errorf("variables %v", v)
			}
		})
	}
}

func runSecretive(t *testing.T, dir, where string) session.Outcome {
	t.Helper()
	runs := filepath.Join(t.TempDir(), "runs")
	self := program(runs)
	self.CommandLine = []string{"bragg", "run", dir, "--set", "db_password=hunter2given"}
	p, err := session.Prepare(t.Context(), session.Order{
		Source: scenario.Source{Path: dir, Trusted: true}, Runs: runs, Target: where, Program: self,
		Variables: scenario.Options{Set: map[string]string{"db_password": "hunter2given"}},
		Plan:      planner.Options{FullPercentMax: 100, AllowShell: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, err := p.Run(t.Context(), session.RunOptions{})
	if err != nil || out.Ended != executor.Completed {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	return out
}

func checkNoSecrets(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range []string{"hunter2", "key-of-the-door", "another-key", "opensesame", "nested-one", "wideopen-below", "hand", "Neil"} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s holds %s", path, secret)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
