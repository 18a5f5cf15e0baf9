package step_test

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/control"
	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/playbook"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/step"
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// ansible is a fake ansible-playbook that records its arguments and input below KEPT.
const ansible = `#!/bin/sh
KEPT='%s'
while [ $# -gt 1 ]; do
	case "$1" in
	--inventory) inventory=$2; shift ;;
	--extra-vars) vars=${2#@}; shift ;;
	--forks) echo "$2" > "$KEPT/forks"; shift ;;
	esac
	shift
done
cp "$inventory" "$KEPT/inventory.json"; cp "$vars" "$KEPT/vars.json"
find . -mindepth 1 | sed 's,^./,,' | LC_ALL=C sort > "$KEPT/files"
pwd > "$KEPT/pwd"; echo "$1" > "$KEPT/playbook"
echo '{"event": "start"}' >&3; echo '{"event": "ok", "host": "192.0.2.1", "task": "Load"}' >&3
ls -l "$inventory" | cut -c1-10 > "$KEPT/mode"; echo "$inventory" > "$KEPT/place"
`

// The example of playbook.Run runs a playbook, on the groups that the playbook names.
func TestExamplePlaybook(t *testing.T) {
	kind, _ := (verb.Catalog{Steps: step.All()}).Kind("playbook.Run")
	if !strings.Contains(kind.Example, "filename: site.yml\n") || !strings.Contains(kind.Example, "inventory: [Workers]\n") {
		t.Error(kind.Example)
	}
	if fault := playbook.Fault(example.Playbook); fault != "" || !strings.HasPrefix(example.Playbook, "- hosts: Workers\n") {
		t.Errorf("%s: %s", fault, example.Playbook)
	}
}

func TestPlaybook(t *testing.T) {
	bin, kept, dir := t.TempDir(), t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(bin, "ansible-playbook"), fmt.Sprintf(ansible, kept), 0o755)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	text := begin + `run:
  - playbook.Run:
      filename: site.yml
      inventory: [A, nodes, cvms]
      remote_user: nutanix
      remote_pass: "top secret"
      forks: 255
      variables: {iterations: 3}
`
	writeFile(t, filepath.Join(dir, "test.yml"), text, 0o644)
	writeFile(t, filepath.Join(dir, "load.fio"), example.Job, 0o644)
	writeFile(t, filepath.Join(dir, "site.yml"), "- hosts: all\n", 0o644)
	sc, err := scenario.Load(t.Context(), scenario.Source{Path: dir, Trusted: true}, scenario.Options{})
	if err != nil {
		t.Fatal(describe(t, err))
	}
	l := newLab(t, 3)
	outcome := l.run(sc, planner.Options{AllowShell: true}, func(cfg *executor.Config, inventory *target.Inventory) {
		real(cfg, inventory)
		for i := range inventory.Nodes {
			inventory.Nodes[i].Address = "192.0.2." + string(rune('1'+i))
			inventory.Hypervisor, inventory.Logins = "ahv", &target.Logins{}
			inventory.Nodes[i].CVM = "192.0.2.10" + string(rune('1'+i))
		}
	})
	wantCompleted(t, outcome)
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(kept, name))
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(string(data))
	}
	var inventory map[string]struct {
		Hosts map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(read("inventory.json")), &inventory); err != nil {
		t.Fatal(err)
	}
	if len(inventory["A"].Hosts) != 3 || len(inventory["nodes"].Hosts) != 3 || len(inventory["cvms"].Hosts) != 3 || inventory["cvms"].Hosts["192.0.2.101"] == nil || inventory["cvms"].Hosts["192.0.2.101"]["ansible_password"] != "top secret" {
		t.Errorf("inventory %+v", inventory)
	}
	var vars map[string]any
	if err := json.Unmarshal([]byte(read("vars.json")), &vars); err != nil || vars["iterations"] != 3.0 || vars["hypervisor"] != "ahv" || vars["output_directory"] == "" {
		t.Errorf("variables %v, %v", vars, err)
	}
	if read("forks") != "255" || read("pwd") != dir || read("playbook") != filepath.Join(dir, "site.yml") || read("mode") != "-rw-------" {
		t.Errorf("forks %s in %s with %s, mode %s", read("forks"), read("pwd"), read("playbook"), read("mode"))
	}
	// Files with passwords are removed with the journal, even if their process is gone.
	private := filepath.Dir(filepath.Dir(read("place")))
	writeFile(t, filepath.Join(private, "left"), "by a kill", 0o600)
	if err := control.RemoveJournal(l.Runs, "r1"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(private); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", private, err)
	}
	// Passwords of a scenario are never in a plan.
	plan, err := planOn(t, sc, "fake:3", planner.Options{})
	if err != nil {
		t.Fatal(describe(t, err))
	}
	if data, _ := json.Marshal(plan); strings.Contains(string(data), "top secret") {
		t.Error("the plan holds a password")
	}
}

// A playbook of a zip file finds the whole folder, and the folder is gone afterwards.
func TestPlaybookOfAZipFile(t *testing.T) {
	bin, kept := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(bin, "ansible-playbook"), fmt.Sprintf(ansible, kept), 0o755)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	text := begin + "run:\n  - playbook.Run: {filename: site.yml, inventory: [A], remote_user: nutanix, remote_pass: nutanix/4u}\n"
	place := filepath.Join(t.TempDir(), "vdbench.zip")
	f, err := os.Create(place)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, data := range map[string]string{"v/test.yml": text, "v/load.fio": example.Job, "v/site.yml": "- hosts: all\n", "v/more/tool": "x"} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(data))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.Load(t.Context(), scenario.Source{Path: place, Trusted: true}, scenario.Options{})
	if err != nil {
		t.Fatal(describe(t, err))
	}
	l := newLab(t, 3)
	wantCompleted(t, l.run(sc, planner.Options{AllowShell: true}, func(cfg *executor.Config, inventory *target.Inventory) {
		real(cfg, inventory)
		inventory.Logins = &target.Logins{}
	}))
	if got, err := os.ReadFile(filepath.Join(kept, "files")); err != nil || string(got) != "load.fio\nmore\nmore/tool\nsite.yml\ntest.yml\n" {
		t.Errorf("the playbook found %q, %v", got, err)
	}
	pwd, err := os.ReadFile(filepath.Join(kept, "pwd"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(strings.TrimSpace(string(pwd))); !os.IsNotExist(err) {
		t.Errorf("the unpacked folder is left: %v", err)
	}
}

// TestPlaybookOnControllersThatAreNotThere: the plan says so, not the run. A simulated target runs no playbook and takes it.
func TestPlaybookOnControllersThatAreNotThere(t *testing.T) {
	text := begin + "run:\n  - playbook.Run: {filename: load.fio, inventory: [cvms], remote_user: u, remote_pass: p}\n"
	l := newLab(t, 3)
	inventory, err := l.Fake.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, simulated := range []bool{true, false} {
		inventory.Simulated = simulated
		catalog := verb.Catalog{Steps: step.All(), Generators: load.Kinds{{Name: "native", Generator: plannertest.Plain{}, JobFiles: true}}}
		_, err := planner.Compile(parse(t, text), inventory, append(target.Capabilities(l.Fake), target.CapPlaybook), catalog, planner.Options{AllowShell: true})
		if found := err != nil && strings.Contains(describe(t, err), "no storage controller VMs"); found == simulated {
			t.Errorf("simulated %v: %v", simulated, err)
		}
	}
}

// TestPlaybooksThatRunNowhere: the plan refuses what ansible would skip or refuse, at its place.
func TestPlaybooksThatRunNowhere(t *testing.T) {
	for _, c := range []struct{ inventory, playbook, want string }{
		{"[]", "- hosts: all\n", "the inventory is empty: the playbook would run on no machine [empty-inventory]"},
		{"[A]", "", `playbook "site.yml" has no play [bad-playbook]`},
		{"[A]", "- hosts: all\n- tasks: []\n", `playbook "site.yml" has no hosts in play 2 [bad-playbook]`},
	} {
		dir := t.TempDir()
		text := begin + "run:\n  - playbook.Run: {filename: site.yml, inventory: " + c.inventory + ", remote_user: u}\n"
		writeFile(t, filepath.Join(dir, "test.yml"), text, 0o644)
		writeFile(t, filepath.Join(dir, "load.fio"), example.Job, 0o644)
		writeFile(t, filepath.Join(dir, "site.yml"), c.playbook, 0o644)
		sc, err := scenario.Load(t.Context(), scenario.Source{Path: dir, Trusted: true}, scenario.Options{})
		if err != nil {
			t.Fatal(describe(t, err))
		}
		_, err = planOn(t, sc, "fake:3", planner.Options{})
		if err == nil || !strings.Contains(describe(t, err), c.want) {
			t.Errorf("%s, %q: %v", c.inventory, c.playbook, err)
		}
	}
}
