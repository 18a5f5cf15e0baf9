package libvirt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// Free space is what the pool has now, not as of the last refresh.
func TestSpaceIsRefreshed(t *testing.T) {
	s := newSimulated(t, 2, false)
	free, seen := int64(900), map[string]int64{} // as libvirt has last seen it
	s.instead = func(h *simulatedHost, c virsh.Call) ([]byte, error, bool) {
		switch c.Name() {
		case "pool-refresh":
			seen[h.name] = free
			return nil, nil, true
		case "pool-dumpxml":
			return fmt.Appendf(nil, "<pool type='dir'><name>default</name><uuid>%s</uuid><capacity>1000</capacity><available>%d</available>"+
				"<target><path>/pool</path></target></pool>", h.pool, seen[h.name]), nil, true
		}
		return nil, nil, false
	}
	l := s.open(t.TempDir()).(*Target)
	names := map[string]bool{}
	for _, left := range []int64{900, 20} {
		free = left
		for _, n := range []string{"host-1", "host-2"} {
			space, err := l.NodeSpace(t.Context(), n)
			if err != nil || space.FreeBytes != left || space.TotalBytes != 1000 || space.Place != `pool "default"` {
				t.Errorf("%s: %+v, %v", n, space, err)
			}
			names[space.Storage] = true
		}
	}
	if len(names) != 2 {
		t.Errorf("pools of two hosts that share nothing but their UUID are called %v", names)
	}
	s.config.Options["storage"] = storageShared
	l = s.open(t.TempDir()).(*Target)
	one, _ := l.NodeSpace(t.Context(), "host-1")
	if other, err := l.NodeSpace(t.Context(), "host-2"); err != nil || one.Storage != other.Storage {
		t.Errorf("%+v and %+v are one, %v", one, other, err)
	}
}

// What preflight counts is what there is now, too.
func TestInventoryRefreshesSpace(t *testing.T) {
	s := newSimulated(t, 1, false)
	refreshed := false
	s.instead = func(_ *simulatedHost, c virsh.Call) ([]byte, error, bool) {
		refreshed = refreshed || c.Name() == "pool-refresh"
		if c.Name() != "pool-dumpxml" || !refreshed {
			return nil, nil, false
		}
		return []byte("<pool type='dir'><name>default</name><uuid>" + simulatedPool +
			"</uuid><capacity>1000</capacity><available>7</available><target><path>/pool</path></target></pool>"), nil, true
	}
	if i, err := s.open(t.TempDir()).Inventory(t.Context()); err != nil || i.FreeBytes != 7 {
		t.Errorf("%d bytes are free, %v", i.FreeBytes, err)
	}
	// Where it cannot be refreshed, the old figure is better than none.
	s = newSimulated(t, 1, false)
	s.instead = func(_ *simulatedHost, c virsh.Call) ([]byte, error, bool) {
		return nil, simulatedError(c, "pool 'default' has asynchronous jobs running."), c.Name() == "pool-refresh"
	}
	if i, err := s.open(t.TempDir()).Inventory(t.Context()); err != nil || i.FreeBytes != 900 {
		t.Errorf("%d bytes are free, %v", i.FreeBytes, err)
	}
}

// A reading of the space delays nothing and waits for nothing: neither for volumes that are being made nor for a silent host.
func TestSpaceWaitsForNothing(t *testing.T) {
	s := newSimulated(t, 1, false)
	l := s.open(t.TempDir()).(*Target)
	p, err := l.nodes[0].store.Pool(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	copying, copied := make(chan bool), make(chan bool)
	s.instead = func(_ *simulatedHost, c virsh.Call) ([]byte, error, bool) {
		if c.Name() == "vol-create-from" { // which takes hours
			copying <- true
			<-copied
		}
		return nil, nil, false
	}
	var made sync.WaitGroup
	made.Go(func() {
		if err := p.Copy(t.Context(), storage.Volume{Name: "copy"}, "blank.qcow2"); err != nil {
			t.Error(err)
		}
	})
	<-copying
	if _, err := l.NodeSpace(t.Context(), "host-1"); !errors.Is(err, storage.ErrInUse) {
		t.Errorf("while volumes are made: %v", err)
	}
	copied <- true
	made.Wait()
	s.forgetCalls()
	var limit time.Duration
	s.instead = func(_ *simulatedHost, c virsh.Call) ([]byte, error, bool) {
		limit = max(limit, c.Limit)
		return nil, virsh.Failed(c, "", virsh.ErrTimedOut), true
	}
	if _, err := l.NodeSpace(t.Context(), "host-1"); !errors.Is(err, virsh.ErrTimedOut) || !strings.Contains(err.Error(), `pool "default"`) {
		t.Errorf("of a silent host: %v", err)
	}
	if calls := s.count("", "pool-refresh"); calls != 1 || limit > 8*time.Second {
		t.Errorf("%d calls of up to %v, want one of 8 s", calls, limit)
	}
	s.instead = nil
	if err := p.Create(t.Context(), storage.Volume{Name: "new"}); err != nil {
		t.Errorf("after a reading that failed: %v", err)
	}
	for _, text := range []string{"", "<pool", "<pool type='rbd'/>", "<pool type='dir'><name>x</name><uuid>no</uuid></pool>"} {
		s.instead = func(_ *simulatedHost, c virsh.Call) ([]byte, error, bool) { return []byte(text), nil, true }
		if space, err := l.NodeSpace(t.Context(), "host-1"); err == nil {
			t.Errorf("%q is %+v", text, space)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.NodeSpace(ctx, "host-1"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

var _ target.SpaceMeter = powered{}
