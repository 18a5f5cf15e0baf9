package libvirt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// storm is a runner under which calls fail at random: before they had any effect, or after.
type storm struct {
	mu      sync.Mutex
	random  *rand.Rand
	odds    float64
	refused int // calls that were not made
	lost    int // calls that were made, without an answer
}

func (s *storm) run(ctx context.Context, c virsh.Call) ([]byte, error) {
	s.mu.Lock()
	bad, late := s.random.Float64() < s.odds, s.random.IntN(2) == 0
	if bad && late {
		s.lost++
	} else if bad {
		s.refused++
	}
	s.mu.Unlock()
	switch {
	case bad && late:
		_, _ = virsh.Run(ctx, c)
		return nil, virsh.Failed(c, "", virsh.ErrTimedOut)
	case bad:
		return nil, virsh.Failed(c, "End of file while reading data: Input/output error", fmt.Errorf("exit status 1"))
	}
	return virsh.Run(ctx, c)
}

func (s *storm) set(odds float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.odds = odds
}

// seed makes what a test draws repeatable.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := rand.Uint64()
	if text := os.Getenv("BRAGG_TEST_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("BRAGG_TEST_SEED=%d", n)
	return n
}

func specsOn(c target.Config, group string, n int) []target.VMSpec {
	specs := make([]target.VMSpec, n)
	for i := range specs {
		specs[i] = target.VMSpec{
			Name: fmt.Sprintf("%s-%04d", group, i+1), Group: group, Ordinal: i, NodeID: c.Nodes[i%len(c.Nodes)].ID,
			Template: blankTemplate, VCPUs: 1, RAMBytes: 64 << 20, DiskBytes: []int64{4 << 20},
		}
	}
	return specs
}

// teardownPassesMax is how often a teardown may be tried until nothing is left.
const teardownPassesMax = 5

// A teardown comes to its end although a third of all calls fails, or had its effect and seems to have failed. What was
// begun under the same conditions, and given up half-way, is found and removed too.
func TestTeardownConverges(t *testing.T) {
	r := newRig(t)
	n := seed(t)
	for round := range uint64(2) {
		dir := t.TempDir()
		s := &storm{random: rand.New(rand.NewPCG(n, round))}
		l := r.open(t, dir, s.run, nil)
		tag := targettest.NewTag("run-1")
		vms, err := l.Create(t.Context(), tag, specsOn(r.config, "OLTP", 4))
		if err != nil {
			t.Fatal(err)
		}
		s.set(0.3)
		// All operations that can leave something behind, for the teardown to find.
		_ = l.(target.VMPower).PowerOnVMs(t.Context(), tag, vms)
		_ = l.(target.Snapshotter).SnapshotVMs(t.Context(), tag, vms[:2], "s")
		_, _ = l.(target.Cloner).CloneVM(t.Context(), tag, vms[0], specsOn(r.config, "LINKED", 2), true)
		_ = l.(target.Migrator).MigrateVMs(t.Context(), tag, vms[2:], r.config.Nodes[0].ID)
		_, _ = l.Create(t.Context(), tag, specsOn(r.config, "LATE", 2))
		passes := 0
		for ; passes < teardownPassesMax; passes++ {
			owned, err := l.Owned(t.Context(), tag)
			if err == nil {
				err = l.Delete(t.Context(), tag, owned)
			}
			if err == nil {
				break
			}
			t.Logf("pass %d: %v", passes+1, err)
		}
		t.Logf("round %d: %d passes more than one, %d calls refused, %d answers lost", round, passes, s.refused, s.lost)
		if s.refused == 0 || s.lost == 0 {
			t.Error("no call failed")
		}
		s.set(0)
		for range 3 { // further passes change nothing
			owned, err := l.Owned(t.Context(), tag)
			if err != nil || len(owned) > 0 {
				t.Errorf("left are %+v, %v", owned, err)
			}
			if err := l.Delete(t.Context(), tag, owned); err != nil {
				t.Error(err)
			}
		}
		if left := r.leftovers(t, dir); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
}

// Foreign objects with similar names stay.
func TestLookalikesStay(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	l := r.open(t, dir, nil, nil)
	tag, foreign := targettest.NewTag("run-1"), targettest.NewTag("run-1")
	vms, err := l.Create(t.Context(), tag, specsOn(r.config, "OLTP", 2))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := l.Create(t.Context(), foreign, specsOn(r.config, "OLTP", 1))
	if err != nil {
		t.Fatal(err)
	}
	mine := storage.VolumeName(tag.Mark(), vms[0].ID, "sdb")
	files := []string{
		mine + ".bak", "x" + mine, storage.VolumeName(tag.Mark()[:63]+"x", vms[0].ID, "sdb"), storage.VolumeName(tag.Mark(), vms[0].ID, "sdb.1") + "~",
		"bragg-OLTP-0001.qcow2", "two words.img",
	}
	for _, name := range files {
		if err := os.WriteFile(filepath.Join(r.PoolDir(), name), []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A domain of the same form as ours, with foreign metadata.
	twin := domain.Domain{
		Type: domain.TCG, Name: domain.Name(vms[0].ID, vms[0].Name) + "-copy", UUID: target.VMID("another", "vm"), RAMBytes: 64 << 20, VCPUs: 1,
	}
	described := filepath.Join(t.TempDir(), "twin.xml")
	if err := os.WriteFile(described, twin.Text(), 0o600); err != nil {
		t.Fatal(err)
	}
	r.virsh(t, 0, "define", described)
	others, err := l.(target.OtherLister).Others(t.Context(), tag)
	if err != nil {
		t.Error(err)
	}
	for name, why := range map[string]string{
		twin.Name: target.WhyUnmarked, "two words.img": target.WhyUnmarked, "bragg-OLTP-0001.qcow2": target.WhyUnmarked, mine + ".bak": target.WhyUnmarked,
		domain.Name(theirs[0].ID, theirs[0].Name): target.WhyAnother, storage.VolumeName(foreign.Mark(), theirs[0].ID, "sdb"): target.WhyAnother,
	} {
		if count := len(slices.DeleteFunc(slices.Clone(others), func(o target.Other) bool { return o.Name != name || o.Why != why })); count != 1 {
			t.Errorf("%s is listed %d times because %s: %+v", name, count, why, others)
		}
	}
	if slices.ContainsFunc(others, func(o target.Other) bool { return o.Name == mine || o.Name == domain.Name(vms[0].ID, vms[0].Name) }) {
		t.Errorf("an own object is listed as foreign: %+v", others)
	}
	owned, err := l.Owned(t.Context(), tag)
	if err != nil || len(owned) != 2 {
		t.Fatalf("owned are %+v, %v", owned, err)
	}
	err = l.Delete(t.Context(), tag, append(slices.Clone(owned), target.VM{ID: twin.UUID, Name: "twin"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if text, err := os.ReadFile(filepath.Join(r.PoolDir(), name)); err != nil || string(text) != "precious" {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	r.virsh(t, 0, "undefine", twin.UUID)
	if got, err := l.Owned(t.Context(), foreign); err != nil || len(got) != 1 || got[0].ID != theirs[0].ID {
		t.Errorf("of another run there are %+v, %v", got, err)
	}
	if err := l.Delete(t.Context(), foreign, theirs); err != nil {
		t.Error(err)
	}
	left := slices.DeleteFunc(r.leftovers(t, dir), func(name string) bool { return slices.Contains(files, name) })
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Volumes without a domain, as on a host that was reinstalled, are found by their tag.
func TestOrphansAreFound(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	l := r.open(t, dir, nil, nil)
	tag := targettest.NewTag("run-1")
	vms, err := l.Create(t.Context(), tag, specsOn(r.config, "OLTP", 2))
	if err != nil {
		t.Fatal(err)
	}
	r.virsh(t, 0, "undefine", vms[0].ID)
	owned, err := l.Owned(t.Context(), tag)
	if err != nil || len(owned) != 2 || !slices.ContainsFunc(owned, func(vm target.VM) bool { return vm.ID == vms[0].ID }) {
		t.Fatalf("owned are %+v, %v", owned, err)
	}
	if err := l.Delete(t.Context(), tag, owned); err != nil {
		t.Fatal(err)
	}
	if left := r.leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A node that does not answer is not empty: nothing on it counts as gone or as left over.
func TestSilentNode(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	l := r.open(t, dir, nil, nil)
	tag := targettest.NewTag("run-1")
	vms, err := l.Create(t.Context(), tag, specsOn(r.config, "OLTP", 2))
	if err != nil {
		t.Fatal(err)
	}
	broken := *r
	broken.config.Nodes = slices.Clone(r.config.Nodes)
	broken.config.Nodes[0].Endpoint = "qemu+unix:///system?socket=/nonexistent/libvirt-sock"
	half := broken.open(t, dir, nil, nil)
	owned, err := half.Owned(t.Context(), tag)
	if err != nil || len(owned) != 2 || owned[0].ID != vms[0].ID || owned[0].Power != target.PowerUnknown {
		t.Errorf("owned are %+v, %v", owned, err)
	}
	if err := half.Delete(t.Context(), tag, owned); diag.ExitCode(err) != diag.ExitUnavailable {
		t.Errorf("deleting VMs of a silent node: %v", err)
	}
	if err := half.Delete(t.Context(), tag, owned[1:]); err != nil {
		t.Errorf("deleting a VM of the other node: %v", err)
	}
	if _, err := half.Create(t.Context(), tag, specsOn(broken.config, "LATE", 1)); err == nil {
		t.Error("a VM was created on a silent node")
	}
	if _, err := half.Inventory(t.Context()); err != nil {
		t.Errorf("one silent node hides the others: %v", err)
	}
	if err := half.(target.ReadyChecker).Ready(t.Context()); err == nil {
		t.Error("the target is ready without a node")
	}
	owned, err = l.Owned(t.Context(), tag)
	if err != nil || len(owned) != 1 || owned[0].ID != vms[0].ID {
		t.Fatalf("owned are %+v, %v", owned, err)
	}
	if err := l.Delete(t.Context(), tag, owned); err != nil {
		t.Error(err)
	}
	if left := r.leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
