package rehearsal

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
)

// A VM of a host that lost its power is found where HA restarts it, and its load goes on there. HA itself is simulated.
func TestRestartByHA(t *testing.T) {
	programtest.SoakOnly(t, "waits for BMCs")
	t.Parallel()
	r := newRig(t, vcsim.Options{HA: time.Second})
	runs := filepath.Join(t.TempDir(), "runs")
	code, out := r.Command(t, "run", filepath.Join("testdata", "ha"), "--target", r.File, "--runs", runs, "--max-full", "99",
		"--rehearse", "12s", "--rehearse-size", "16MiB")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	dirs, err := filepath.Glob(filepath.Join(runs, "*", "manifest.json"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("bundles %q, %v", dirs, err)
	}
	b, err := result.Open(filepath.Dir(dirs[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	nodes := b.Manifest().Target.Nodes
	var lost string // VM
	restarted, placed := false, time.Duration(0)
	reported := map[string]string{}
	for e, err := range b.Events() {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Kind == interval.EventPlatform:
			reported[e.Platform] = e.Subject + ": " + e.Message
			if e.Platform == string(target.PlatformRestarted) {
				lost, restarted = e.Subject, e.Node == nodes[0].ID && e.From == nodes[1].ID
			}
		case e.Kind == interval.EventPlaced && e.Unasked:
			placed = time.Duration(e.AtNanos)
			if e.Node != nodes[0].ID || e.From != nodes[1].ID || !e.AfterCut {
				t.Errorf("placed: %+v", e)
			}
		}
	}
	if !restarted || placed == 0 {
		t.Errorf("nodes %+v; the platform reported %q; found elsewhere at %s", nodes, reported, placed)
	}
	for _, kind := range []target.PlatformEventKind{target.PlatformNodeDown, target.PlatformRestarted, target.PlatformNodeUp} {
		if reported[string(kind)] == "" {
			t.Errorf("no report of %s: %q", kind, reported)
		}
	}
	if n := strings.Count(out, "Writes ended on "+lost); n != 1 {
		t.Errorf("the load on %s ended %d times: %s", lost, n, out)
	}
	if after := operationsAfter(t, b, lost, placed); after == 0 {
		t.Errorf("%s did nothing after its restart: %s", lost, out)
	}
	if _, said := r.Command(t, "clean", "--runs", runs); !strings.Contains(said, "Nothing to clean") {
		t.Errorf("bragg clean found something: %s", said)
	}
	if left := r.remains(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// operationsAfter counts operations of a VM in intervals that begin after a moment of the run.
func operationsAfter(t *testing.T, b *result.Bundle, vm string, after time.Duration) (n uint64) {
	t.Helper()
	for one, err := range b.Intervals() {
		if err != nil {
			t.Fatal(err)
		}
		if one.VM == vm && time.Duration(one.StartNanos) > after {
			for i := range one.Directions {
				n += one.Directions[i].Operations
			}
		}
	}
	return n
}
