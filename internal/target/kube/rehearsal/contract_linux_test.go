package rehearsal

import (
	"context"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
)

func greet(ctx context.Context, conn net.Conn) (string, error) {
	hello, err := client.New(conn, client.Options{}).Hello(ctx)
	return hello.Boot, err
}

// inGate are the tests in which a real cluster differs from a simulated one. The others are for the soak.
var inGate = []string{"clone", "create and delete", "dial", "foreign tag", "found after a crash", "inventory", "lock", "maintenance", "revert"}

// The contract on a real cluster, with agents in pods, volumes of both modes, and nodes that lose power, but for metrics, which have
// tests of their own in package contract.
func TestContract(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster with nodes")
	}
	for _, mode := range []string{"filesystem", "block"} {
		t.Run(mode, func(t *testing.T) {
			if mode == "block" {
				programtest.SoakOnly(t, "the contract once more, on volumes of another mode")
			}
			t.Parallel()
			contract(t, mode)
		})
	}
}

func contract(t *testing.T, mode string) {
	var rigs sync.Map // by the name of their test
	of := func(t *testing.T) *rig {
		r, _ := rigs.Load(t.Name())
		return r.(*rig)
	}
	free := make(chan *rig, besides) // as many as tests run beside each other
	for _, r := range newRigs(t, besides) {
		free <- r
	}
	targettest.Run(t, targettest.Harness{
		Parallel: true, Gate: inGate,
		Open: func(t *testing.T) target.Target {
			shared := <-free
			t.Cleanup(func() { free <- shared })
			r := *shared
			r.config.Options = maps.Clone(r.config.Options)
			r.config.Options["volume_mode"] = mode
			switch {
			case strings.HasSuffix(t.Name(), "/maintenance"):
				r.onFaultNodes(t)
				r.config.Allow.Maintenance = true
			case strings.HasSuffix(t.Name(), "/node_power"):
				r.withBMCs(t)
			}
			rigs.Store(t.Name(), &r)
			return r.open(t)
		},
		Reopen: func(t *testing.T, _ target.Target) target.Target { return of(t).open(t) },
		Greet:  greet,
		WriteDisk: func(t *testing.T, vm target.VM, d target.Disk, offset int64, data []byte) {
			of(t).write(t, vm, d, offset, data)
		},
		ReadDisk: func(t *testing.T, vm target.VM, d target.Disk, offset int64, length int) []byte {
			return of(t).read(t, vm, d, offset, length)
		},
		Leftovers: func(t *testing.T, _ target.Target) []string { return of(t).left(t) },
	})
}

// A driver that cannot take snapshots is found by its lasting error, not after the whole patience.
func TestSnapshotClassIsMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster with nodes")
	}
	t.Parallel()
	r := newRig(t)
	delete(r.config.Options, "snapshot_class") // the cluster has no default one
	r.config.Options["patience"] = "20s"       // a fifth of it for an error that lasts
	tgt := r.open(t)
	tag := targettest.NewTag("run-1")
	vms, err := tgt.Create(t.Context(), tag, r.specs(1))
	if err != nil {
		t.Fatal(err)
	}
	err = tgt.(target.Snapshotter).SnapshotVMs(t.Context(), tag, vms, "s")
	if err == nil || !strings.Contains(err.Error(), "cannot find default snapshot class") || strings.Contains(err.Error(), "not ready after 20s") {
		t.Errorf("got %v", err)
	}
	if err := tgt.Delete(t.Context(), tag, vms); err != nil {
		t.Error(err)
	}
}
