package libvirt

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// A real pool on a small file system: files of others show at the next reading, and so does the growth of a disk that took no space
// when it was made.
func TestSpaceOfARealPool(t *testing.T) {
	if testing.Short() {
		t.Skip("a lab of two hosts")
	}
	const size, junk = 64 << 20, 24 << 20
	small := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	// Hosts have the mounts of the moment in which they are made.
	if err := unix.Mount("small", small, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	r := newRig(t)
	command(t, "cp", filepath.Join(r.PoolDir(), "blank.qcow2"), small)
	for i := range r.Hosts {
		r.virsh(t, i, "pool-define-as", "small", "dir", "--target", small)
		r.virsh(t, i, "pool-start", "small")
	}
	r.config.Pool = "small"
	l := r.open(t, t.TempDir(), nil, nil)
	tag := targettest.NewTag("run-1")
	vms, err := l.Create(t.Context(), tag, []target.VMSpec{{
		Name: "OLTP-0001", Group: "OLTP", NodeID: r.config.Nodes[0].ID, Template: blankTemplate, VCPUs: 1, RAMBytes: 64 << 20,
		DiskBytes: []int64{junk},
	}})
	if err != nil {
		t.Fatal(err)
	}
	free := func() int64 {
		t.Helper()
		var spaces []target.Space
		for _, n := range r.config.Nodes {
			space, err := l.(target.SpaceMeter).NodeSpace(t.Context(), n.ID)
			if err != nil {
				t.Fatal(err)
			}
			spaces = append(spaces, space)
		}
		if a, b := spaces[0], spaces[1]; a != b || a.TotalBytes != size || a.Place != `pool "small"` {
			t.Fatalf("two hosts with one pool say %+v and %+v", a, b)
		}
		return spaces[0].FreeBytes
	}
	before := free()
	if err := os.WriteFile(filepath.Join(small, "others"), bytes.Repeat([]byte("x"), junk), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := free(); after != before-junk {
		t.Errorf("others wrote %d bytes, and of %d are %d left", junk, before, after)
	}
	if i, err := l.Inventory(t.Context()); err != nil || i.FreeBytes != before-junk {
		t.Errorf("preflight counts %d bytes, %v", i.FreeBytes, err)
	}
	// The guest writes all of its disk.
	path := filepath.Join(small, storage.VolumeName(tag.Mark(), vms[0].ID, "sdb"))
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), junk), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := free(); after != before-2*junk {
		t.Errorf("a disk grew by %d bytes, and of %d are %d left", junk, before-junk, after)
	}
	// Until nothing is left: a full storage can be read.
	err = os.WriteFile(filepath.Join(small, "the rest"), bytes.Repeat([]byte("x"), size), 0o600)
	if after := free(); !errors.Is(err, unix.ENOSPC) || after != 0 {
		t.Errorf("a full pool has %d bytes free, %v", after, err)
	}
	if err := l.Delete(t.Context(), tag, vms); err != nil {
		t.Error(err)
	}
	if after := free(); after < junk {
		t.Errorf("after the VM was removed there are %d bytes", after)
	}
}

// libvirt stops a pool that it cannot read. Reading the space must not leave it so, nor keep VMs from being removed.
func TestPoolThatCannotBeReadForAMoment(t *testing.T) {
	r := newRig(t)
	place := filepath.Join(t.TempDir(), "place")
	if err := os.Mkdir(place, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "cp", filepath.Join(r.PoolDir(), "blank.qcow2"), place)
	for i := range r.Hosts {
		r.virsh(t, i, "pool-define-as", "frail", "dir", "--target", place)
		r.virsh(t, i, "pool-start", "frail")
	}
	r.config.Pool = "frail"
	dir := t.TempDir()
	l := r.open(t, dir, nil, nil)
	tag := targettest.NewTag("run-1")
	vms, err := l.Create(t.Context(), tag, specsOn(r.config, "OLTP", 2))
	if err != nil {
		t.Fatal(err)
	}
	space := func(host int) error {
		_, err := l.(target.SpaceMeter).NodeSpace(t.Context(), r.config.Nodes[host].ID)
		return err
	}
	away := place + ".away"
	if err := os.Rename(place, away); err != nil {
		t.Fatal(err)
	}
	for host := range r.Hosts {
		if err := space(host); err == nil {
			t.Error("a pool without a folder was read")
		}
	}
	if state := r.virsh(t, 0, "pool-info", "frail"); !strings.Contains(state, "inactive") {
		t.Fatalf("libvirt has not stopped the pool:\n%s", state)
	}
	if err := os.Rename(away, place); err != nil {
		t.Fatal(err)
	}
	if err := space(0); err != nil {
		t.Errorf("the pool is there again: %v", err)
	}
	if err := l.Delete(t.Context(), tag, vms); err != nil {
		t.Error(err)
	}
	if left := r.leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if files, err := os.ReadDir(place); err != nil || len(files) != 1 {
		t.Errorf("in the pool are %v, %v", files, err)
	}
	// One that its owner has stopped stays so.
	r.virsh(t, 0, "pool-destroy", "frail")
	if err := space(0); err == nil {
		t.Error("a pool that is stopped was read")
	}
	if state := r.virsh(t, 0, "pool-info", "frail"); !strings.Contains(state, "inactive") {
		t.Errorf("a pool that its owner has stopped was started:\n%s", state)
	}
}
