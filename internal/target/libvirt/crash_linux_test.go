package libvirt

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// A guest whose kernel panics has stopped: libvirt and callers of its agent learn of it, and it starts again when it is powered on.
// The other guest keeps running.
func TestCrashedGuest(t *testing.T) {
	r := newRig(t)
	authority := r.withGuests(t)
	dir := t.TempDir()
	l := r.open(t, dir, nil, authority)
	tag := targettest.NewTag("run-1")
	specs := specsOn(r.config, "OLTP", 2)
	for i := range specs {
		specs[i].Template, specs[i].RAMBytes, specs[i].VCPUs = guestTemplate, 192<<20, 2
	}
	vms, err := l.Create(t.Context(), tag, specs)
	if err != nil {
		t.Fatal(err)
	}
	power := l.(target.VMPower)
	if err := power.PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	boots := []string{bootOf(t, l, vms[0]), bootOf(t, l, vms[1])}
	host := 0
	if vms[0].NodeID != r.config.Nodes[0].ID {
		host = 1
	}
	r.virsh(t, host, "inject-nmi", vms[0].ID) // the kernel of the template panics on one that no device explains
	ctx, cancel := context.WithTimeout(t.Context(), bootWithin)
	defer cancel()
	var stopped *target.StoppedError
	for !errors.As(err, &stopped) {
		if ctx.Err() != nil {
			tellOf(t, l, vms[0])
			t.Fatalf("a guest that has panicked has not stopped: %v", err)
		}
		short, done := context.WithTimeout(ctx, 20*time.Second)
		conn, dialled := l.(target.AgentDialer).DialAgent(short, vms[0])
		done()
		if err = dialled; err == nil {
			_ = conn.Close()
		}
	}
	if stopped.VM != vms[0].Name || !strings.Contains(stopped.Reason, "crashed") {
		t.Errorf("got %v", stopped)
	}
	owned, err := l.Owned(t.Context(), tag)
	if err != nil || owned[0].Power != target.PowerOff || owned[1].Power != target.PowerOn {
		t.Errorf("owned are %+v, %v", owned, err)
	}
	if now := bootOf(t, l, vms[1]); now != boots[1] {
		t.Error("the other guest restarted")
	}
	if err := power.PowerOnVMs(t.Context(), tag, vms[:1]); err != nil {
		t.Fatal(err)
	}
	if now := bootOf(t, l, vms[0]); now == boots[0] {
		t.Error("the guest did not restart")
	}
	if err := l.Delete(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	if left := r.leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
