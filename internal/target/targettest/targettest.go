// Package targettest is the contract of every provider as a test suite; package target describes the contract.
//
//	targettest.Run(t, targettest.Harness{Open: …, Greet: …})
//
// Every capability that a target offers in addition is tested; target.Capabilities finds them.
package targettest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/testreq"
)

// Harness adapts the suite to one provider.
type Harness struct {
	// Open opens a target without VMs of Bragg. The suite closes it.
	Open func(t *testing.T) target.Target
	// Reopen opens the target that Open opened before, as another process would after a crash: t is not closed. Nil if
	// nothing outlives the process.
	Reopen func(t *testing.T, before target.Target) target.Target
	// Greet speaks with an agent over conn and returns something that differs after each power cycle.
	Greet func(ctx context.Context, conn net.Conn) (string, error)
	// WriteDisk and ReadDisk access the data of a VM's disk from outside. Nil if disks hold no data.
	WriteDisk func(t *testing.T, vm target.VM, d target.Disk, offset int64, data []byte)
	ReadDisk  func(t *testing.T, vm target.VM, d target.Disk, offset int64, length int) []byte
	// Leftovers returns what a deleted VM left behind: processes, files. Nil if nothing can be left.
	Leftovers func(t *testing.T, before target.Target) []string
	// Uncounted are the metrics of nodes and VMs that the target does not count: they have no value, rather than zero.
	Uncounted []string
	// Parallel runs the tests beside each other, for platforms that let them wait. Open gives those that change nodes, "maintenance"
	// and "node power", nodes that no other test uses.
	Parallel bool
	// Gate are the names of the tests that every run does, where the others are left to BRAGG_SOAK_REHEARSALS; nil: all.
	Gate []string
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	tests := map[string]func(*suite){
		"inventory":             inventory,
		"create and delete":     createAndDelete,
		"all or nothing":        allOrNothing,
		"foreign tag":           foreignTag,
		"incomplete tag":        incompleteTag,
		"two owners, one name":  twoOwners,
		"hostile names":         hostileNames,
		"power":                 power,
		"dial":                  dial,
		"clone":                 clone,
		"snapshot":              snapshot,
		"revert":                revert,
		"maintenance":           maintenance,
		"migrate":               migrate,
		"node power":            nodePower,
		"node meter":            nodeMeter,
		"space":                 space,
		"vm meter":              vmMeter,
		"lock":                  lock,
		"placement":             placement,
		"cancelled context":     cancelled,
		"many calls at once":    concurrent,
		"found after a crash":   reopened,
		"others":                others,
		"closed":                closed,
		"values are not shared": values,
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			if h.Gate != nil && !slices.Contains(h.Gate, name) {
				testreq.Soak(t, "BRAGG_SOAK_REHEARSALS", "a part of the contract that simulated platforms pass in every run")
			}
			if h.Parallel {
				t.Parallel()
			}
			s := &suite{T: t, h: h, target: h.Open(t), tag: NewTag("run-1")}
			defer s.finish()
			s.caps = target.Capabilities(s.target)
			tests[name](s)
		})
	}
}

// NewTag returns a unique tag.
func NewTag(run string) target.Tag {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:])
	return target.Tag{Controller: "targettest", Run: run, Nonce: hex.EncodeToString(nonce[:])}
}

// suite is one test with its target.
type suite struct {
	*testing.T
	h      Harness
	target target.Target
	tag    target.Tag
	caps   []target.Capability
	done   bool

	sampled map[string]time.Time // the newest sample of each node or VM and metric
	nodes   int                  // samples of nodes that came with those of VMs
}

// finish deletes what the test made and checks that nothing is left.
func (s *suite) finish() {
	s.Helper()
	if s.done {
		return
	}
	vms, err := s.target.Owned(context.Background(), s.tag)
	if err != nil {
		s.Errorf("list what is left: %v", err)
	}
	if err := s.target.Delete(context.Background(), s.tag, vms); err != nil {
		s.Errorf("delete what is left: %v", err)
	}
	if s.h.Leftovers != nil {
		if left := s.h.Leftovers(s.T, s.target); len(left) > 0 {
			s.Errorf("deleted VMs left behind: %q", left)
		}
	}
	if err := s.target.Close(); err != nil {
		s.Errorf("close: %v", err)
	}
}

// needs reports whether the target offers a capability.
func (s *suite) needs(c target.Capability) bool { return slices.Contains(s.caps, c) }

// require returns the target as the interface of a capability, which Capabilities has found before.
func require[T any](s *suite) T {
	s.Helper()
	offered, ok := s.target.(T)
	if !ok {
		s.Fatalf("the target lists a capability and does not implement %T", *new(T))
	}
	return offered
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// specs describes n VMs with two small disks, spread over the nodes.
func (s *suite) specs(group string, n int) []target.VMSpec {
	s.Helper()
	inventory, err := s.target.Inventory(s.Context())
	s.must(err)
	template := "ubuntu1604"
	if !inventory.AnyTemplate {
		template = inventory.Templates[0]
	}
	specs := make([]target.VMSpec, n)
	for i := range specs {
		specs[i] = target.VMSpec{
			Name: fmt.Sprintf("%s-%04d", group, i+1), Group: group, Ordinal: i, Template: template, VCPUs: 1,
			RAMBytes: 512 << 20, DiskBytes: []int64{4 << 20, 8 << 20}, NodeID: inventory.Nodes[i%len(inventory.Nodes)].ID,
		}
		if inventory.Topologies && i == 1 {
			specs[i].VCPUs, specs[i].Topology = 2, target.Topology{Sockets: 1, Cores: 2, Threads: 1}
		}
	}
	return specs
}

func (s *suite) create(group string, n int) []target.VM {
	s.Helper()
	vms, err := s.target.Create(s.Context(), s.tag, s.specs(group, n))
	s.must(err)
	return vms
}

func (s *suite) powerOn(vms []target.VM) {
	s.Helper()
	var mu sync.Mutex
	began, ended := map[string]int{}, 0
	ctx := target.WithObserver(s.Context(), func(vm string) func(error) {
		mu.Lock()
		defer mu.Unlock()
		began[vm]++
		return func(error) {
			mu.Lock()
			defer mu.Unlock()
			ended++
		}
	})
	s.must(require[target.VMPower](s).PowerOnVMs(ctx, s.tag, vms))
	for _, vm := range vms {
		if began[vm.Name] != 1 || ended != len(vms) {
			s.Errorf("the power on of %s was reported %d times; %d ends of %d VMs", vm.Name, began[vm.Name], ended, len(vms))
		}
	}
}

// owned returns the VMs that carry the tag of the test.
func (s *suite) owned() []target.VM {
	s.Helper()
	vms, err := s.target.Owned(s.Context(), s.tag)
	s.must(err)
	return vms
}

func (s *suite) wantPower(want target.PowerState) {
	s.Helper()
	for _, vm := range s.owned() {
		if vm.Power != want {
			s.Errorf("vm %q is %s, want %s", vm.Name, vm.Power, want)
		}
	}
}

func (s *suite) wantRefused(what string, err error) {
	s.Helper()
	if diag.ExitCode(err) != diag.ExitRefused {
		s.Errorf("%s: got %v, want a refusal", what, err)
	}
}

func names(vms []target.VM) []string {
	all := make([]string, len(vms))
	for i, vm := range vms {
		all[i] = vm.Name
	}
	return all
}
