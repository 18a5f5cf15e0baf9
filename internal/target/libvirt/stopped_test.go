package libvirt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// hostWith is a host with one domain in a state.
func hostWith(t *testing.T, active bool, state string) (virsh.Runner, target.VM) {
	t.Helper()
	vm := target.VM{ID: target.VMID(testTag().Mark(), "OLTP-0001"), Name: "OLTP-0001", NodeID: "n"}
	own, err := domain.NewMetadata(testTag(), domain.Record{VM: vm})
	if err != nil {
		t.Fatal(err)
	}
	text := domain.Domain{Type: domain.TCG, Name: "x", UUID: vm.ID, Metadata: own}.Text()
	if active {
		text = []byte(strings.Replace(string(text), "<domain ", `<domain id="1" `, 1))
	}
	return func(_ context.Context, c virsh.Call) ([]byte, error) {
		switch {
		case c.Args[0] == "list":
			return []byte(vm.ID + "\n"), nil
		case strings.HasPrefix(c.Args[0], "dumpxml"):
			return text, nil
		case c.Args[0] == "domstate":
			return []byte(state + "\n\n"), nil
		}
		return nil, fmt.Errorf("unexpected call %q", c.Args)
	}, vm
}

// What libvirt says of a domain decides whether its agent is called again.
func TestStatesOfVMs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		active, inVain bool
		state          string
		stopped        bool
		want           string // in the error
	}{
		{true, false, "not queried", false, ""},
		{true, true, "running (booted)", false, ""},
		{true, true, "paused (user)", false, ""},
		{true, true, "paused (migrating)", false, ""},
		{true, true, "paused (I/O error)", true, "storage"},
		{true, true, "crashed (panicked)", true, "panicked"},
		{false, false, "shut off (crashed)", true, "panicked, or its emulator"},
		{false, true, "shut off (destroyed)", true, "cut its power"},
		{false, false, "shut off (migrated)", false, "no power"},
	} {
		t.Run(c.state, func(t *testing.T) {
			t.Parallel()
			run, vm := hostWith(t, c.active, c.state)
			l, err := prepare(target.Config{Nodes: []target.NodeConfig{{ID: "n", Endpoint: "qemu:///system"}}}, target.OpenOptions{}, run)
			if err != nil {
				t.Fatal(err)
			}
			err = l.mayAnswer(t.Context(), vm, c.inVain)
			if got := errors.As(err, new(*target.StoppedError)); got != c.stopped {
				t.Errorf("stopped: %v, want %v (%v)", got, c.stopped, err)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A VM that is nowhere for a moment only, as one that moves, has not stopped.
func TestStopIsConfirmed(t *testing.T) {
	t.Parallel()
	off, vm := hostWith(t, false, "shut off (unknown)")
	on, _ := hostWith(t, true, "running (migrated)")
	lists := 0
	run := func(ctx context.Context, c virsh.Call) ([]byte, error) {
		if c.Args[0] == "list" {
			lists++
		}
		if lists == 1 {
			return off(ctx, c)
		}
		return on(ctx, c)
	}
	l, err := prepare(target.Config{Nodes: []target.NodeConfig{{ID: "n", Endpoint: "qemu:///system"}}}, target.OpenOptions{}, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.mayAnswer(t.Context(), vm, false); err != nil || lists != 2 {
		t.Errorf("after %d lists: %v", lists, err)
	}
}
