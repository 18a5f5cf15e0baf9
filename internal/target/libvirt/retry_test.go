package libvirt

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// A VM that stays busy is not asked for a snapshot without pause, and not for ever.
func TestSnapshotOfBusyVM(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, 1, false)
		vm := s.hosts[0].add(t, testTag(), "A", true)
		s.instead = func(_ *simulatedHost, c call) ([]byte, error, bool) {
			return nil, simulatedError(c, "Timed out during operation: cannot acquire state change lock (held by monitor)"), c.name() == "snapshot-create"
		}
		l := s.open(t.TempDir())
		began := time.Now()
		err := l.(target.Snapshotter).SnapshotVMs(t.Context(), testTag(), []target.VM{vm}, "s")
		if !isBusy(err) {
			t.Errorf("got %v", err)
		}
		if n, took := s.count("", "snapshot-create"), time.Since(began); n != attemptsMax || took < attemptsMax*attemptDelay {
			t.Errorf("it was asked %d times within %v", n, took)
		}
	})
}

// A snapshot whose answer was lost is there, and no second one is made; one that a call cut short left files of is passed over.
func TestSnapshotWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, 1, false)
		h := s.hosts[0]
		vm := h.add(t, testTag(), "A", true)
		volume := volumeName(testTag().Mark(), vm.ID, "sdb")
		s.instead = func(_ *simulatedHost, c call) ([]byte, error, bool) {
			switch {
			case c.name() != "snapshot-create":
				return nil, nil, false
			case strings.Contains(string(c.stdin), volume+".1"):
				return nil, simulatedError(c, "external snapshot file for disk sdb already exists"), true
			}
			s.set(func() { h.domains[vm.ID] = strings.ReplaceAll(h.domains[vm.ID], volume, volume+".2") })
			return nil, &callError{command: c.name(), err: errTimedOut}, true
		}
		l := s.open(t.TempDir())
		if err := l.(target.Snapshotter).SnapshotVMs(t.Context(), testTag(), []target.VM{vm}, "s"); err != nil {
			t.Error(err)
		}
		if n := s.count("", "snapshot-create"); n != 2 || !strings.Contains(h.domains[vm.ID], volume+".2") {
			t.Errorf("it was asked %d times", n)
		}
	})
}

// However many domains went while they were looked at, that is no failure of their host.
func TestDomainsThatWent(t *testing.T) {
	t.Parallel()
	var all []string
	for i := range sightsPerCall {
		all = append(all, fmt.Sprintf("error: failed to get domain '%s'\n", vmID("went", fmt.Sprint(i))))
	}
	exit := errors.New("exit status 1")
	for _, n := range []int{1, 2, sightsPerCall} {
		err := failed(call{}, strings.Join(all[:n], "\n"), exit)
		if !isGone(err) || len(err.text) > errorBytesMax {
			t.Errorf("%d domains: %v", n, err)
		}
		if err := failed(call{}, strings.Join(all[:n], "\n")+"error: Disconnected from host due to end of file\n", exit); isGone(err) {
			t.Errorf("%d domains and another reason: %v", n, err)
		}
	}
	if n := len(strings.Join(all, "\n")); n > printedBytesMax {
		t.Errorf("%d bytes are printed, and %d kept", n, printedBytesMax)
	}
	// A survey during which all of them go is made again.
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, 1, false)
		s.instead = func(_ *simulatedHost, c call) ([]byte, error, bool) {
			if c.name() != "list" || s.count("", "list") > 1 {
				return nil, nil, false
			}
			return []byte(vmID("went", "1") + "\n" + vmID("went", "2") + "\n"), nil, true
		}
		l := s.open(t.TempDir())
		if vms, err := l.Owned(t.Context(), testTag()); err != nil || len(vms) > 0 {
			t.Errorf("%+v, %v", vms, err)
		}
		if silent := l.(*Target).nodes[0].silent; silent || s.count("", "list") != 2 {
			t.Errorf("the host is silent: %v, after %d looks", silent, s.count("", "list"))
		}
	})
}
