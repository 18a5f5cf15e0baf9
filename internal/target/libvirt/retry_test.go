package libvirt

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// Snapshots of a busy VM are tried with pauses, and not forever.
func TestSnapshotOfBusyVM(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, 1, false)
		vm := s.hosts[0].add(t, testTag(), "A", true)
		s.instead = func(_ *simulatedHost, c virsh.Call) ([]byte, error, bool) {
			return nil, simulatedError(c, "Timed out during operation: cannot acquire state change lock (held by monitor)"), c.Name() == "snapshot-create"
		}
		l := s.open(t.TempDir())
		began := time.Now()
		err := l.(target.Snapshotter).SnapshotVMs(t.Context(), testTag(), []target.VM{vm}, "s")
		if !virsh.IsBusy(err) {
			t.Errorf("got %v", err)
		}
		if n, took := s.count("", "snapshot-create"), time.Since(began); n != virsh.AttemptsMax || took < virsh.AttemptsMax*virsh.AttemptDelay {
			t.Errorf("%d attempts within %v", n, took)
		}
	})
}

// After a lost answer no second snapshot is made; the files of an interrupted one are skipped.
func TestSnapshotWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, 1, false)
		h := s.hosts[0]
		vm := h.add(t, testTag(), "A", true)
		volume := storage.VolumeName(testTag().Mark(), vm.ID, "sdb")
		s.instead = func(_ *simulatedHost, c virsh.Call) ([]byte, error, bool) {
			switch {
			case c.Name() != "snapshot-create":
				return nil, nil, false
			case strings.Contains(string(c.Stdin), volume+".1"):
				return nil, simulatedError(c, "external snapshot file for disk sdb already exists"), true
			}
			s.set(func() { h.domains[vm.ID] = strings.ReplaceAll(h.domains[vm.ID], volume, volume+".2") })
			return nil, virsh.Failed(c, "", virsh.ErrTimedOut), true
		}
		l := s.open(t.TempDir())
		if err := l.(target.Snapshotter).SnapshotVMs(t.Context(), testTag(), []target.VM{vm}, "s"); err != nil {
			t.Error(err)
		}
		if n := s.count("", "snapshot-create"); n != 2 || !strings.Contains(h.domains[vm.ID], volume+".2") {
			t.Errorf("%d attempts", n)
		}
	})
}

// Domains that go during a survey are not a failure of their host.
func TestDomainsThatWent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, 1, false)
		s.instead = func(_ *simulatedHost, c virsh.Call) ([]byte, error, bool) {
			if c.Name() != "list" || s.count("", "list") > 1 {
				return nil, nil, false
			}
			return []byte(target.VMID("went", "1") + "\n" + target.VMID("went", "2") + "\n"), nil, true
		}
		l := s.open(t.TempDir())
		if vms, err := l.Owned(t.Context(), testTag()); err != nil || len(vms) > 0 {
			t.Errorf("%+v, %v", vms, err)
		}
		if silent := l.(*Target).nodes[0].domains.Silent(); silent || s.count("", "list") != 2 {
			t.Errorf("the host is silent: %v, after %d lists", silent, s.count("", "list"))
		}
	})
}
