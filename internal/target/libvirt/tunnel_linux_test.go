package libvirt

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/testreq"
)

// overSSH makes the rig's hosts be reached by ssh, each URI as change leaves it.
func (r *rig) overSSH(change func(uri string) string) *rig {
	other := *r
	other.config.Nodes = slices.Clone(r.config.Nodes)
	for i, h := range r.Hosts {
		other.config.Nodes[i].Endpoint = change(r.SSHURI(h))
	}
	return &other
}

func asItIs(uri string) string { return uri }

// Hosts that ssh reaches are as good as those with a socket here: a VM is made from what is uploaded, a lease is kept, and all
// of it takes one connection for each host.
func TestOverSSH(t *testing.T) {
	r := newRigOf(t, lab.Options{SSH: true})
	over := r.overSSH(asItIs)
	dir := t.TempDir()
	l := over.open(t, dir, nil, nil)
	inventory, err := l.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range inventory.Facts {
		if strings.HasPrefix(f.Name, "state of") {
			t.Errorf("%s: %s", f.Name, f.Value)
		}
	}
	lock, err := l.(target.Locker).Lock(t.Context(), lease.NewHolder("run-1", 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.open(t, t.TempDir(), nil, nil).(target.Locker).Lock(t.Context(), lease.NewHolder("run-2", 0)); !errors.As(err, new(*lease.HeldError)) {
		t.Errorf("two controllers have it: %v", err)
	}
	first := links(t, l)
	vms, err := l.Create(t.Context(), testTag(), specsOn(over.config, "G", 2))
	if err != nil {
		t.Fatal(err)
	}
	content := []byte(strings.Repeat("sector of 16 B.\n", 4<<20/16))
	p, err := plain(l).nodes[0].store.Pool(t.Context())
	if err == nil {
		err = p.Upload(t.Context(), storage.VolumeName(testTag().Mark(), vms[0].ID, "sdb"), content)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := r.readDisk(t, vms[0], vms[0].Disks[0], 0, len(content)); string(got) != string(content) {
		t.Error("an upload has other content than it should")
	}
	if err := l.(target.Migrator).MigrateVMs(t.Context(), testTag(), vms[:1], over.config.Nodes[1].ID); err != nil {
		t.Error(err)
	}
	if err := l.Delete(t.Context(), testTag(), vms); err != nil {
		t.Error(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
	if now := links(t, l); !slices.Equal(first, now) {
		t.Error("more than one connection was made to a host")
	}
	if left := r.leftovers(t, dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	for _, p := range testreq.ProcessesNaming(t, r.KnownHostsFile()) {
		t.Errorf("left: %s", p)
	}
}

// plain is the target without what its BMCs add.
func plain(l target.Target) *Target {
	if p, ok := l.(powered); ok {
		return p.Target
	}
	return l.(*Target)
}

// links are the URIs by which hosts are reached, another one for each connection.
func links(t *testing.T, l target.Target) (all []string) {
	t.Helper()
	for _, n := range plain(l).nodes {
		uri, err := n.Reach(t.Context(), virsh.QueryLimit)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, uri)
	}
	return all
}
