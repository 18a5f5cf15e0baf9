package step_test

import (
	"github.com/braggdev/bragg/internal/step/example"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// A playbook that hangs is ended after its time, and fails its step.
func TestPlaybookThatHangs(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(bin, "ansible-playbook"), "#!/bin/sh\nexec sleep 1000\n", 0o755)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	writeFile(t, filepath.Join(dir, "test.yml"), begin+`run:
  - playbook.Run:
      filename: site.yml
      inventory: [A]
      remote_user: nutanix
      timeout_secs: 1
`, 0o644)
	writeFile(t, filepath.Join(dir, "load.fio"), example.Job, 0o644)
	writeFile(t, filepath.Join(dir, "site.yml"), "- hosts: all\n", 0o644)
	sc, err := scenario.Load(t.Context(), scenario.Source{Path: dir, Trusted: true}, scenario.Options{})
	if err != nil {
		t.Fatal(describe(t, err))
	}
	outcome := newLab(t, 3).run(sc, planner.Options{AllowShell: true}, func(cfg *executor.Config, inventory *target.Inventory) {
		real(cfg, inventory)
		for i := range inventory.Nodes {
			inventory.Nodes[i].Address = "192.0.2." + string(rune('1'+i))
		}
		inventory.Logins = &target.Logins{}
	})
	if outcome.Ended == executor.Completed || !strings.Contains(outcome.Reason, "it did not end within 1 s") {
		t.Errorf("%+v", outcome)
	}
}
