package local_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/local"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// startController runs a controller with four VMs in dir, and returns once they all run.
func startController(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	command := exec.Command(os.Args[0], "__controller", dir)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the controller said %q, %v", line, err)
	}
	return command
}

func agentsIn(dir string) []string {
	return slices.DeleteFunc(processes(dir), func(line string) bool { return !strings.Contains(line, "__agent") })
}

func pidsOf(lines []string) []int {
	var pids []int
	for _, line := range lines {
		pid, _, _ := strings.Cut(line, " ")
		if n, err := strconv.Atoi(pid); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// After kill -9 of the controller its agents are gone: busy ones, idle ones, ones that were never connected to, and a
// stopped one that cannot notice. Processes that escaped from a generator are found by clean.
func TestKilledControllerTakesItsVMsAlong(t *testing.T) {
	dir := t.TempDir()
	command := startController(t, dir)
	running := agentsIn(dir)
	if len(running) != 4 {
		t.Fatalf("4 agents should run, found %q", running)
	}
	if err := syscall.Kill(pidsOf(running)[3], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if len(processes("sleep")) != 1 {
		t.Fatal("the runaway process is missing: nothing would be tested")
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	waitUntil(t, "all agents end", func() bool { return len(processes(dir)) == 0 })

	l := openAt(t, dir)
	vms, err := l.Owned(t.Context(), controllerTag())
	if err != nil || len(vms) != 4 {
		t.Fatalf("found %d VMs, %v", len(vms), err)
	}
	if err := l.Delete(t.Context(), controllerTag(), vms); err != nil {
		t.Fatal(err)
	}
	if left := processes("sleep"); len(left) > 0 {
		t.Errorf("the runaway process is still there: %q", left)
	}
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A controller that is killed while it creates and starts VMs leaves nothing that clean does not find.
func TestKilledAtAnyMoment(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const rounds = 12
	for round := range rounds {
		dir := t.TempDir()
		command := exec.Command(os.Args[0], "__controller", dir)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = command.Process.Kill() })
		// A little later in every round, by what the controller has done and not by the clock: an owner file and a
		// folder for each of four VMs, then their processes.
		const stages = 12 // one round each
		waitUntil(t, "the controller gets that far", func() bool {
			entries, _ := os.ReadDir(dir)
			return len(entries)+len(agentsIn(dir)) > round%stages
		})
		_ = command.Process.Kill()
		_ = command.Wait()
		waitUntil(t, "all agents end", func() bool { return len(processes(dir)) == 0 })
		l := openAt(t, dir)
		vms, err := l.Owned(t.Context(), controllerTag())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Delete(t.Context(), controllerTag(), vms); err != nil {
			t.Fatal(err)
		}
		if left := leftovers(t, dir); len(left) > 0 {
			t.Fatalf("round %d left behind: %q", round, left)
		}
		_ = l.Close()
	}
}

// Every stage at which the creation of a VM can be cut short leaves something that its owner finds and removes.
func TestHalfMadeVMs(t *testing.T) {
	for name, undo := range map[string]func(dir string, vm target.VM) error{
		"no folder":   func(dir string, vm target.VM) error { return os.RemoveAll(filepath.Join(dir, vm.ID)) },
		"no disks":    func(dir string, vm target.VM) error { return removeAll(filepath.Join(dir, vm.ID, "*")) },
		"no record":   func(dir string, vm target.VM) error { return os.Remove(filepath.Join(dir, vm.ID, "vm.json")) },
		"half record": func(dir string, vm target.VM) error { return os.Truncate(filepath.Join(dir, vm.ID, "vm.json"), 10) },
		"one disk":    func(dir string, vm target.VM) error { return os.Remove(filepath.Join(dir, vm.ID, "sdb")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, tag := t.TempDir(), targettest.NewTag("r")
			before := openAt(t, dir)
			vm := create(t, before, tag, 1)[0]
			_ = before.Close()
			if err := undo(dir, vm); err != nil {
				t.Fatal(err)
			}
			l := openAt(t, dir)
			vms, err := l.Owned(t.Context(), tag)
			if err != nil || len(vms) != 1 || vms[0].ID != vm.ID || vms[0].Name != vm.Name {
				t.Fatalf("found %+v, %v", vms, err)
			}
			if name != "one disk" {
				if err := l.PowerOnVMs(t.Context(), tag, vms); err == nil {
					t.Error("half a VM was powered on")
				}
			}
			if err := l.Delete(t.Context(), tag, vms); err != nil {
				t.Fatal(err)
			}
			if left := leftovers(t, dir); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func removeAll(pattern string) error {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, path := range found {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// Files in the directory that are not provably ours are never touched, even under our names.
func TestForeignThingsStay(t *testing.T) {
	dir, tag := t.TempDir(), targettest.NewTag("r")
	l := openAt(t, dir)
	vm := create(t, l, tag, 1)[0]
	outside := filepath.Join(t.TempDir(), "precious")
	keep := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	id := func(n string) string { return "OLTP-0001-" + strings.Repeat(n, 16) }
	ours, err := os.ReadFile(filepath.Join(dir, vm.ID+".owner"))
	if err != nil {
		t.Fatal(err)
	}
	kept := []string{
		keep("OLTP-0001", "no owner"), keep("notes.owner", "{}"), keep(id("a")+".owner", ""), keep(id("b")+".owner", `{"id":`),
		keep(id("c")+".owner", string(ours)), // an owner file of another VM under this name
		keep(id("d")+".owner", `{"id":"`+id("d")+`","mark":"another"}`),
	}
	if err := os.WriteFile(outside, ours, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, id("e")+".owner")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	kept = append(kept, outside, link)
	if err := os.Mkdir(filepath.Join(dir, id("b")), 0o700); err != nil {
		t.Fatal(err)
	}
	kept = append(kept, filepath.Join(dir, id("b")))

	vms, err := l.Owned(t.Context(), tag)
	if err != nil || len(vms) != 1 {
		t.Fatalf("found %+v, %v", vms, err)
	}
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		forged := vm
		forged.ID = id(n)
		if err := l.Delete(t.Context(), tag, []target.VM{forged}); diag.ExitCode(err) != diag.ExitRefused {
			t.Errorf("deleting %s: got %v, want a refusal", forged.ID, err)
		}
	}
	if err := l.Delete(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	for _, path := range kept {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("gone: %v", err)
		}
	}
}

// A record that was tampered with cannot lead the agent to anything but the VM's own disks.
func TestRecordCannotLeadElsewhere(t *testing.T) {
	dir, tag := t.TempDir(), targettest.NewTag("r")
	before := openAt(t, dir)
	vm := create(t, before, tag, 1)[0]
	_ = before.Close()
	path := filepath.Join(dir, vm.ID, "vm.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]map[string]any
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	r["vm"]["disks"] = []map[string]any{{"device": "/dev/sdb", "path": "/dev/sda", "size_bytes": 1 << 20}}
	if text, err = json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	vms, err := openAt(t, dir).Owned(t.Context(), tag)
	if err != nil || len(vms) != 1 || vms[0].Disks[0].Path != filepath.Join(dir, vm.ID, "sdb") {
		t.Errorf("got %+v, %v", vms, err)
	}
}

// Nodes that a killed controller switched off are still off for the process that cleans up, which can switch them on.
func TestNodePowerOutlivesTheController(t *testing.T) {
	dir := t.TempDir()
	before := openAt(t, dir)
	if err := before.PowerOffNode(t.Context(), "node-2"); err != nil {
		t.Fatal(err)
	}
	_ = before.Close()
	l := openAt(t, dir)
	if state, err := l.NodePowerState(t.Context(), "node-2"); err != nil || state != target.PowerOff {
		t.Errorf("node-2 is %s, %v", state, err)
	}
	if err := l.PowerOnNode(t.Context(), "node-2"); err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A program that is killed while it records that a node is off leaves half of the record, which the undo removes.
func TestHalfARecordOfNodesIsRemoved(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "nodes-off.json.new"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.PowerOnNode(t.Context(), "node-2"); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestDamagedStateIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nodes-off.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := local.Open(t.Context(), config(), target.OpenOptions{Dir: dir}); err == nil {
		_ = l.Close()
		t.Error("opened a target without knowing which nodes are off")
	}
}
