package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/testreq"
)

// eventWithin is how far the moment of an event may be from the truth. Both are clocks of one machine.
const eventWithin = time.Second

// A guest that another program switches off, and one that panics: connections to their agents end, and the moments are those of
// the events, also when they are noticed later.
func TestMomentsOfStoppedGuests(t *testing.T) {
	r := newRig(t)
	authority := r.withGuests(t)
	l := r.open(t, t.TempDir(), nil, authority)
	tag := targettest.NewTag("run-1")
	specs := specsOn(r.config, "OLTP", 2)
	for i := range specs {
		specs[i].Template, specs[i].RAMBytes = guestTemplate, 192<<20
	}
	vms, err := l.Create(t.Context(), tag, specs)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.(target.VMPower).PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	for i, command := range []string{"destroy", "inject-nmi"} {
		vm := vms[i]
		host := 0
		if vm.NodeID != r.config.Nodes[0].ID {
			host = 1
		}
		bootOf(t, l, vm)
		ctx, cancel := context.WithTimeout(t.Context(), bootWithin)
		conn, err := l.(target.AgentDialer).DialAgent(ctx, vm)
		if err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		r.virsh(t, host, command, vm.ID)
		after := r.offSince(ctx, t, host, vm)
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: the connection ended with %v", command, err)
		}
		_ = conn.Close()
		time.Sleep(2 * eventWithin) // noticing comes later
		_, err = l.(target.AgentDialer).DialAgent(ctx, vm)
		cancel()
		var stopped *target.StoppedError
		if !errors.As(err, &stopped) {
			t.Fatalf("%s: got %v", command, err)
		}
		if stopped.Uncertain != 0 || stopped.At.Before(before) || stopped.At.After(after.Add(eventWithin)) {
			t.Errorf("%s: it stopped %v after the command, %v uncertain; it was off after %v", command, stopped.At.Sub(before), stopped.Uncertain, after.Sub(before))
		}
		t.Logf("%s: %v after the command; seen off after %v; noticed after %v", command, stopped.At.Sub(before), after.Sub(before), time.Since(before))
	}
	if err := l.Delete(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
}

// offSince waits until the host says that a VM is off.
func (r *rig) offSince(ctx context.Context, t *testing.T, host int, vm target.VM) time.Time {
	t.Helper()
	for ctx.Err() == nil {
		out, err := exec.CommandContext(ctx, "virsh", "-q", "-c", r.Hosts[host].URI(), "domstate", vm.ID).Output()
		if err == nil && strings.TrimSpace(string(out)) == "shut off" {
			return time.Now()
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the VM does not stop")
	return time.Time{}
}

// listeningVariable makes the test's program one that listens until it is killed.
const listeningVariable = "BRAGG_TEST_LISTENS"

// TestListeningEndsWithTheProgram: virsh stops listening when its controller is killed, or closes its target.
func TestListeningEndsWithTheProgram(t *testing.T) {
	c := target.Config{Nodes: []target.NodeConfig{{ID: "n", Endpoint: "qemu:///system"}}}
	own := func(ctx context.Context, c virsh.Call) ([]byte, error) {
		c.URI = "test:///default" // libvirt's own driver, in the process of virsh
		return virsh.Run(ctx, c)
	}
	l, err := prepare(c, target.OpenOptions{}, own)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(listeningVariable) != "" {
		l.listen()
		select {}
	}
	testreq.Program(t, "virsh")
	command := exec.Command(os.Args[0], "-test.run=^TestListeningEndsWithTheProgram$")
	command.Env = append(os.Environ(), listeningVariable+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	virsh := listening(t, command.Process.Pid)
	if err := command.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = command.Wait()
	gone(t, virsh)

	l.listen()
	virsh = listening(t, os.Getpid())
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	gone(t, virsh)
}

// listening returns the process of virsh that listens for a process.
func listening(t *testing.T, parent int) int {
	t.Helper()
	for range 600 {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
		for _, list := range lists {
			children, _ := os.ReadFile(list)
			for pid := range strings.FieldsSeq(string(children)) {
				if args, _ := os.ReadFile("/proc/" + pid + "/cmdline"); strings.HasPrefix(string(args), "virsh\x00") && strings.Contains(string(args), "\x00event\x00") {
					id, err := strconv.Atoi(pid)
					if err != nil {
						t.Fatal(err)
					}
					return id
				}
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("no virsh listens")
	return 0
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	for range 600 {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
}
