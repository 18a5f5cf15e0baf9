package vcenter

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/trust"
)

// stubborn is a task that cannot be cancelled, as a clone whose disks are copied.
type stubborn struct {
	*simulator.Task
	refused chan struct{}
}

func (s *stubborn) CancelTask(*simulator.Context, *types.CancelTask) soap.HasFault {
	close(s.refused)
	return &methods.CancelTaskBody{Fault_: simulator.Fault("", &types.NotSupported{})}
}

// simulated starts a simulated vCenter and connects to it.
func simulated(t *testing.T) (*simulator.Model, *Client) {
	t.Helper()
	model := simulator.VPX()
	if err := model.Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Remove)
	model.Service.TLS = new(tls.Config)
	s := model.Service.NewServer()
	t.Cleanup(s.Close)
	sum := sha256.Sum256(s.Certificate().Raw)
	c, err := Dial(t.Context(), Options{Endpoint: s.URL.Host, User: "u", Password: password, Trust: trust.Service{Fingerprint: hex.EncodeToString(sum[:])}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return model, c
}

// A cancelled call returns after its task, whose object would else appear later.
func TestCancelledTaskIsAwaited(t *testing.T) {
	model, c := simulated(t)
	refused := make(chan struct{})
	var ended atomic.Bool
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.Run(ctx, Task{Limit: QuickMax, Start: func(context.Context) (types.ManagedObjectReference, error) {
		inside := model.Service.Context
		one := simulator.CreateTask(model.Map().Any("Folder"), "slow", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
			cancel()
			<-refused
			time.Sleep(100 * time.Millisecond) // it goes on
			ended.Store(true)
			return nil, nil
		})
		ref := one.Run(inside)
		inside.Map.Put(&stubborn{Task: one, refused: refused})
		return ref, nil
	}})
	if !errors.Is(err, context.Canceled) || !ended.Load() {
		t.Errorf("ended: %v; got %v", ended.Load(), err)
	}
}
