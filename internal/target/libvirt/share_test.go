package libvirt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// Whole groups of VMs are dialled at once. They share surveys, none of which began before its caller asked for one.
func TestSurveysAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const dialers = 50
		s := newSimulated(t, 2, false)
		vm := s.hosts[0].add(t, testTag(), "A", false)
		s.instead = func(h *simulatedHost, c virsh.Call) ([]byte, error, bool) {
			if c.Name() != "dumpxml" {
				return nil, nil, false
			}
			s.mu.Lock()
			out, err := h.dump(c)
			s.mu.Unlock()
			time.Sleep(10 * time.Second) // what it shows is old by then
			return out, err, true
		}
		l := s.open(t.TempDir()).(*Target)
		ask := func() error {
			seen, err := l.surveys.get(t.Context(), l.survey)
			if err == nil && seen.vms[vm.ID].power() != target.PowerOn {
				err = errors.New("it has no power")
			}
			return err
		}
		early := make(chan error, 1)
		go func() { early <- ask() }()
		time.Sleep(time.Second)
		s.set(func() {
			s.hosts[0].domains[vm.ID] = strings.Replace(s.hosts[0].domains[vm.ID], "<domain ", "<domain id='1' ", 1)
		})
		var all sync.WaitGroup
		for range dialers {
			all.Go(func() {
				if err := ask(); err != nil {
					t.Errorf("after it was powered on: %v", err)
				}
			})
		}
		all.Wait()
		if err := <-early; err == nil {
			t.Error("before it was powered on it had power")
		}
		if n := s.count("host-1", "list"); n != 2 {
			t.Errorf("%d surveys for %d callers", n, dialers)
		}
	})
}

// A caller that gives up, while it waits or makes the survey, does not fail the others.
func TestCancelledSurvey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g sharedSurvey
		look := func(ctx context.Context) (*survey, error) {
			select {
			case <-time.After(10 * time.Second):
				return &survey{}, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		patience := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
		var all sync.WaitGroup
		for _, d := range []time.Duration{5 * time.Second, 7 * time.Second, time.Hour, 6 * time.Second, time.Hour} {
			all.Go(func() {
				s, err := g.get(patience(d), look)
				if (err == nil) != (d == time.Hour) || (s == nil) != (err != nil) {
					t.Errorf("patience of %v: %v", d, err)
				}
			})
			time.Sleep(time.Second)
		}
		all.Wait()
		broken := errors.New("all hosts are silent")
		if _, err := g.get(t.Context(), func(context.Context) (*survey, error) { return nil, broken }); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}

// Calls that are the same for all clones are made once.
func TestClonesAskOnce(t *testing.T) {
	t.Parallel()
	calls := map[string]int{}
	for _, linked := range []bool{false, true} {
		for _, clones := range []int{1, 20} {
			s := newSimulated(t, 1, false)
			vm := s.hosts[0].add(t, testTag(), "A", false)
			s.instead = func(h *simulatedHost, c virsh.Call) ([]byte, error, bool) {
				if c.Name() == "snapshot-create" {
					s.set(func() { h.domains[vm.ID] = strings.ReplaceAll(h.domains[vm.ID], ".sdb<", ".sdb.1<") })
					return nil, nil, true
				}
				return nil, nil, false
			}
			l := s.open(t.TempDir()).(*Target)
			var specs []target.VMSpec
			for i := range clones {
				specs = append(specs, target.VMSpec{Name: fmt.Sprint("B", i), NodeID: "host-1", VCPUs: 1, RAMBytes: 64 << 20, DiskBytes: []int64{1 << 20}})
			}
			made, err := l.CloneVM(t.Context(), testTag(), vm, specs, linked)
			if err != nil || len(made) != clones || len(s.hosts[0].domains) != clones+1 {
				t.Fatalf("%d clones, %v", len(made), err)
			}
			for _, command := range []string{"pool-dumpxml", "vol-dumpxml", "pool-refresh"} {
				key := fmt.Sprint(command, linked)
				if n := s.count("", command); clones == 1 {
					calls[key] = n
				} else if n != calls[key] {
					t.Errorf("linked %v: %s %d times for one clone and %d times for %d", linked, command, calls[key], n, clones)
				}
			}
		}
	}
}

// A migration calls the nodes of the VM alone, and a VM that is there already costs one survey.
func TestMigrationAsksTheNodesThatMatter(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, 5, false)
	s.config.Options["storage"] = "shared"
	vm := s.hosts[0].add(t, testTag(), "A", false)
	s.hosts[1].volumes = s.hosts[0].volumes
	s.instead = func(h *simulatedHost, c virsh.Call) ([]byte, error, bool) {
		if c.Name() == "migrate" {
			s.set(func() {
				s.hosts[1].domains[vm.ID] = h.domains[vm.ID] // and is not undefined at home, as if the call was cut off then
			})
			return nil, nil, true
		}
		return nil, nil, false
	}
	l := s.open(t.TempDir()).(*Target)
	if err := l.MigrateVMs(t.Context(), testTag(), []target.VM{vm}, "host-2"); err != nil {
		t.Fatal(err)
	}
	if len(s.hosts[0].domains) != 0 || len(s.hosts[1].domains) != 1 {
		t.Errorf("%d definitions at its former place and %d at the other", len(s.hosts[0].domains), len(s.hosts[1].domains))
	}
	if n := s.count("host-3", "dumpxml") + s.count("host-5", "dumpxml"); n != 0 {
		t.Errorf("nodes that never had it were called %d times", n)
	}
	s.forgetCalls()
	if err := l.MigrateVMs(t.Context(), testTag(), []target.VM{vm}, "host-2"); err != nil {
		t.Fatal(err)
	}
	if n := s.count("", "dumpxml"); n != 1 { // of the survey
		t.Errorf("a VM that is there already was described %d times", n)
	}
}

// VMs of a silent node share one reading of its BMC.
func TestSilentNodeIsReadOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("a silent host is waited for")
	}
	t.Parallel()
	s := newSimulated(t, 2, true)
	dir := t.TempDir()
	l := s.open(dir).(powered)
	const vms = 12
	for i := range vms {
		vm := s.hosts[0].add(t, testTag(), fmt.Sprint("A", i), true)
		if err := l.remover.memory.keep(remembered{Mark: testTag().Mark(), Node: "host-1", Record: domain.Record{VM: vm}}); err != nil {
			t.Fatal(err)
		}
	}
	s.hosts[0].bmc.SetOff(true)
	owned, err := l.Owned(t.Context(), testTag())
	if err != nil || len(owned) != vms || owned[0].Power != target.PowerOff {
		t.Fatalf("%+v, %v", owned, err)
	}
	if n := s.hosts[0].bmc.Readings(); n != 1 {
		t.Errorf("the BMC was read %d times for %d VMs", n, vms)
	}
}
