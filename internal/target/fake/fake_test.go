package fake_test

import (
	"context"
	"errors"
	"net"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
	"github.com/braggdev/bragg/internal/target/targettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, change func(*target.Config)) *fake.Target {
	t.Helper()
	c := target.Config{Provider: "fake", NodeCount: 4, Allow: target.Allow{NodePower: true, Maintenance: true}}
	if change != nil {
		change(&c)
	}
	f, err := fake.Open(t.Context(), c, target.OpenOptions{
		ServeAgent: func(ctx context.Context, conn net.Conn, vm target.VM) error {
			return agent.Serve(ctx, conn, agent.Options{VM: vm.Name})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestContract(t *testing.T) {
	targettest.Run(t, targettest.Harness{
		Open: func(t *testing.T) target.Target { return open(t, nil) },
		Greet: func(ctx context.Context, conn net.Conn) (string, error) {
			c := client.New(conn, client.Options{})
			hello, err := c.Hello(ctx)
			return hello.Boot, err
		},
	})
}

func TestHasEveryCapability(t *testing.T) {
	f := open(t, nil)
	defer f.Close()
	want := []target.Capability{
		target.CapAgents, target.CapAddresses, target.CapVMPower, target.CapClone, target.CapSnapshot, target.CapRevert, target.CapMigrate, target.CapRelocate,
		target.CapPlacement, target.CapNodePower, target.CapMaintenance, target.CapReady, target.CapContainer, target.CapDatastore, target.CapDrain, target.CapNodeMeter,
		target.CapVMMeter, target.CapGuestShell, target.CapPlaybook, target.CapHostShell,
	}
	if got := target.Capabilities(f); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	inventory, err := f.Inventory(t.Context())
	if err != nil || !inventory.Simulated || len(inventory.Simulates) != len(want) {
		t.Errorf("it does not say that it is simulated: %+v, %v", inventory, err)
	}
}

func TestFaultsAndRecord(t *testing.T) {
	f := open(t, nil)
	defer f.Close()
	tag := targettest.NewTag("r")
	boom := errors.New("boom")
	f.SetFault(func(op fake.Operation) error {
		if op.Name == "PowerOnVMs" && op.Subject == "b" {
			return boom
		}
		return nil
	})
	vms, err := f.Create(t.Context(), tag, []target.VMSpec{{Name: "a", NodeID: "node-1"}, {Name: "b", NodeID: "node-2"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.PowerOnVMs(t.Context(), tag, vms); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	want := []fake.Operation{
		{Name: "Create", Subject: "a"}, {Name: "Create", Subject: "b"},
		{Name: "PowerOnVMs", Subject: "a"}, {Name: "PowerOnVMs", Subject: "b"},
	}
	if got := f.Operations(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	owned, err := f.Owned(t.Context(), tag)
	if err != nil || owned[0].Power != target.PowerOn || owned[1].Power != target.PowerOff {
		t.Errorf("got %+v, %v", owned, err)
	}
}

func TestPowerMustBeAllowed(t *testing.T) {
	f := open(t, func(c *target.Config) { c.Allow.NodePower = false })
	defer f.Close()
	if err := f.PowerOffNode(t.Context(), "node-1"); diag.ExitCode(err) != diag.ExitRefused {
		t.Errorf("got %v", err)
	}
}

func TestTemplatesOfTheFile(t *testing.T) {
	f := open(t, func(c *target.Config) { c.Templates = map[string]string{"ubuntu1604": "image-7"} })
	defer f.Close()
	tag := targettest.NewTag("r")
	if _, err := f.Create(t.Context(), tag, []target.VMSpec{{Name: "a", NodeID: "node-1", Template: "windows"}}); err == nil {
		t.Error("a VM was made from a template that does not exist")
	}
	if _, err := f.Create(t.Context(), tag, []target.VMSpec{{Name: "a", NodeID: "node-1", Template: "ubuntu1604"}}); err != nil {
		t.Error(err)
	}
}

// Two targets answer the same calls alike, addresses and numbers included.
func TestDeterministic(t *testing.T) {
	var seen []any
	for range 2 {
		f := open(t, nil)
		tag := target.Tag{Controller: "c", Run: "r", Nonce: "00000000000000000000000000000000"}
		vms, err := f.Create(t.Context(), tag, []target.VMSpec{{Name: "a", NodeID: "node-1"}, {Name: "b", NodeID: "node-2"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.PowerOnVMs(t.Context(), tag, vms); err != nil {
			t.Fatal(err)
		}
		samples, ofVMs, err := f.SampleVMs(t.Context(), tag)
		if err != nil || len(ofVMs) != 2*len(target.VMMetrics()) {
			t.Fatal(err, ofVMs)
		}
		for i := range samples {
			samples[i].At = time.Time{}
		}
		for i := range ofVMs {
			ofVMs[i].At = time.Time{}
		}
		seen = append(seen, []any{vms, samples, ofVMs})
		_ = f.Close()
	}
	if !reflect.DeepEqual(seen[0], seen[1]) {
		t.Errorf("got %v and %v", seen[0], seen[1])
	}
}
