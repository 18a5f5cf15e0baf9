package libvirt

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/trust"
)

// bootWithin only guards against hanging: an emulated guest boots in seconds, on a machine that is busy in minutes.
const bootWithin = 5 * time.Minute

// bootOf returns which start of the guest answers.
func bootOf(t *testing.T, l target.Target, vm target.VM) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bootWithin)
	defer cancel()
	conn, err := l.(target.AgentDialer).DialAgent(ctx, vm)
	if err != nil {
		tellOf(t, l, vm)
		t.Fatal(err)
	}
	c := client.New(conn, client.Options{})
	defer c.Close()
	hello, err := c.Hello(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if hello.VM != vm.Name {
		t.Errorf("the agent is that of %q, want %q", hello.VM, vm.Name)
	}
	return hello.Boot
}

// tellOf logs what hosts see of a guest that does not answer.
func tellOf(t *testing.T, l target.Target, vm target.VM) {
	t.Helper()
	for _, n := range l.(powered).nodes {
		for _, command := range []string{"domstate --reason ", "domstats ", "qemu-monitor-command --hmp --cmd 'info registers' "} {
			out, err := n.Query(t.Context(), command+vm.ID)
			t.Logf("%s: %s: %s %v", n.ID, command, out, err)
		}
	}
}

// What is done to a running guest leaves it running: the agent is the same one afterwards. What takes its power does not.
func TestRunningGuest(t *testing.T) {
	r := newRig(t)
	authority := r.withGuests(t)
	dir := t.TempDir()
	l := r.open(t, dir, nil, authority)
	tag := targettest.NewTag("run-1")
	specs := specsOn(r.config, "OLTP", 2)
	for i := range specs {
		specs[i].Template, specs[i].RAMBytes = guestTemplate, 192<<20
	}
	vms, err := l.Create(t.Context(), tag, specs)
	if err != nil {
		t.Fatal(err)
	}
	if vms[0].Addresses[0] == vms[1].Addresses[0] {
		t.Fatalf("both VMs have the address %s", vms[0].Addresses[0])
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	power := l.(target.VMPower)
	must(power.PowerOnVMs(t.Context(), tag, vms))
	boot := bootOf(t, l, vms[0])
	same := func(after string) {
		t.Helper()
		if now := bootOf(t, l, vms[0]); now != boot {
			t.Errorf("the guest restarted: %s", after)
		}
	}
	must(l.(target.Snapshotter).SnapshotVMs(t.Context(), tag, vms[:1], "s"))
	same("snapshot")
	one, two := r.config.Nodes[0].ID, r.config.Nodes[1].ID
	must(l.(target.Migrator).MigrateVMs(t.Context(), tag, vms[:1], two))
	same("live migration")
	must(l.(target.Migrator).MigrateVMs(t.Context(), tag, vms[:1], one))
	same("live migration back")

	// Another program migrates it: the next survey shows where it is.
	r.virsh(t, 0, "migrate", "--live", "--unsafe", "--persistent", "--undefinesource", vms[0].ID, r.Hosts[1].URI())
	owned, err := l.Owned(t.Context(), tag)
	if err != nil || owned[0].NodeID != two || owned[0].Power != target.PowerOn {
		t.Errorf("owned are %+v, %v", owned, err)
	}
	same("an unexpected migration")

	answersAt(t, r, vms)
	must(l.(powered).ShutdownVMs(t.Context(), tag, vms[:1]))
	if owned, err = l.Owned(t.Context(), tag); err != nil || owned[0].Power != target.PowerOff || owned[1].Power != target.PowerOn {
		t.Errorf("after a shutdown owned are %+v, %v", owned, err)
	}
	renewed(t, r, dir, tag, owned)
	must(l.Delete(t.Context(), tag, owned))
	if left := r.leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// answersAt checks that an address that answers is not given to another VM.
func answersAt(t *testing.T, r *rig, vms []target.VM) {
	t.Helper()
	ctx := t.Context()
	if !address.Answers(ctx, vms[1].Addresses[0]) {
		t.Error("a guest that runs does not answer at its address")
	}
	taken := *r
	taken.config.Addresses.First = vms[1].Addresses[0]
	other := taken.open(t, t.TempDir(), nil, nil)
	theirs := targettest.NewTag("run-2")
	more, err := other.Create(ctx, theirs, specsOn(r.config, "OTHER", 1))
	if err != nil {
		t.Fatal(err)
	}
	if more[0].Addresses[0] == vms[1].Addresses[0] {
		t.Error("an address was given away twice")
	}
	// Even when no domain says so: a stranger answers there.
	addresses := other.(powered).addresses
	got, err := addresses.Reserve(ctx, nil, []string{"x"})
	if err != nil || got[0] == vms[1].Addresses[0] || netip.MustParseAddr(got[0]).Less(netip.MustParseAddr(vms[1].Addresses[0])) {
		t.Errorf("got %q, %v", got, err)
	}
	addresses.Release("x")
	inventory, err := other.Inventory(ctx)
	if err != nil || !strings.Contains(fmtFacts(inventory.Facts), "already in use") {
		t.Errorf("the inventory does not report a skipped address: %v", err)
	}
	if err := other.Delete(ctx, theirs, more); err != nil {
		t.Error(err)
	}
}

func fmtFacts(facts []target.Fact) string {
	var b strings.Builder
	for _, f := range facts {
		b.WriteString(f.Name + ": " + f.Value + "\n")
	}
	return b.String()
}

// renewed powers a VM on from a program that has another authority than the one that made it, as a clean-up does.
func renewed(t *testing.T, r *rig, dir string, tag target.Tag, vms []target.VM) {
	t.Helper()
	second, err := trust.New("run", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	l := r.open(t, dir, nil, second)
	if err := l.(target.VMPower).PowerOnVMs(t.Context(), tag, vms[:1]); err != nil {
		t.Fatal(err)
	}
	_ = bootOf(t, l, vms[0])
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if conn, err := l.(target.AgentDialer).DialAgent(short, vms[1]); err == nil {
		_ = conn.Close()
		t.Error("an agent of the first authority spoke to the second")
	}
}
