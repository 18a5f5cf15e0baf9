package rehearsal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
)

// moments are when a controller is killed: as soon as there are so many objects of a kind.
var moments = []struct {
	kind  string
	count int
}{
	{"configmaps/", 1}, {"persistentvolumeclaims/", 1}, {"persistentvolumeclaims/", 3}, {"secrets/", 1}, {"pods/", 1}, {"pods/", 2}, {"volumesnapshots/", 1}, {"volumesnapshots/", 3},
}

// killGuard only guards against a run that never gets there.
const killGuard = 3 * time.Minute

// The real controller is killed at many moments of a run. A second one is refused while it lives. Cleaning removes everything that it
// left, and nothing of others.
func TestKilledController(t *testing.T) {
	programtest.SoakOnly(t, "runs on a real cluster for minutes")
	t.Parallel()
	r := newRig(t)
	tgt := r.open(t)
	tag := targettest.NewTag("another")
	theirs, err := tgt.Create(t.Context(), tag, r.specs(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := tgt.(target.VMPower).PowerOnVMs(t.Context(), tag, theirs); err != nil {
		t.Fatal(err)
	}
	others := r.left(t)
	u := newUser(t, r)
	for i, m := range moments {
		runs := filepath.Join(t.TempDir(), "runs")
		if err := os.Mkdir(runs, 0o700); err != nil {
			t.Fatal(err)
		}
		c, out, cancel := u.Prepare(t, u.Arguments(programtest.Rehearsal{Scenario: "snapshot_impact", Length: "20s"}, runs)...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		reached := func() bool {
			n := 0
			for _, name := range r.left(t) {
				if strings.HasPrefix(name, m.kind) && !slices.Contains(others, name) {
					n++
				}
			}
			return n >= m.count
		}
		limit := time.Now().Add(killGuard)
		for !reached() && time.Now().Before(limit) {
			time.Sleep(20 * time.Millisecond)
		}
		if !reached() {
			t.Errorf("there are never %d %s", m.count, m.kind)
		}
		if i == 0 {
			code, said := u.command(t, u.Arguments(programtest.Rehearsal{Scenario: "four_corners", Length: "5s"}, filepath.Join(t.TempDir(), "second"))...)
			if code != diag.ExitLocked {
				t.Errorf("a second controller ended with %d: %s", code, said)
			}
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		cancel()
		u.wantNoSecret(t, "the output", out.Bytes())
		code, said := u.command(t, "clean", "--runs", runs)
		if left := r.left(t); code != 0 || !slices.Equal(left, others) {
			t.Errorf("killed at %d %s: clean ended with %d and left %q, want %q: %s\n%s", m.count, m.kind, code, left, others, said, out)
		}
		u.search(t, runs)
	}
	if owned, err := tgt.Owned(t.Context(), tag); err != nil || len(owned) != 1 || owned[0].Power != target.PowerOn {
		t.Errorf("the VM of another run is %+v, %v", owned, err)
	}
	if err := tgt.Delete(t.Context(), tag, theirs); err != nil {
		t.Error(err)
	}
}
