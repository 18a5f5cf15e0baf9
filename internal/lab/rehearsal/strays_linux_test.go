package rehearsal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
)

// foreignDomain is a VM of another owner, which never runs.
const foreignDomain = "<domain type='qemu'><name>web01</name><memory unit='MiB'>64</memory><os><type arch='x86_64'>hvm</type></os></domain>"

// meddle is what an administrator does: he has a VM of his own on the first host, and moves one of the run's while it has load.
func meddle(t *testing.T, r *rig, runs string) (undo func()) {
	path := filepath.Join(t.TempDir(), "web01.xml")
	if err := os.WriteFile(path, []byte(foreignDomain), 0o600); err != nil {
		t.Fatal(err)
	}
	r.virsh(t, r.Hosts[0], "define", path)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !awaitLoad(ctx, runs) {
			return
		}
		for name := range strings.FieldsSeq(r.virsh(t, r.Hosts[0], "list", "--name")) {
			if strings.Contains(name, "Stayers-0001") {
				r.virsh(t, r.Hosts[0], "migrate", "--live", "--unsafe", "--persistent", "--undefinesource", name, r.Hosts[1].URI())
			}
		}
	}()
	return func() {
		cancel()
		<-done
		r.virsh(t, r.Hosts[0], "undefine", "web01")
	}
}

// awaitLoad returns true when the load that is to be disturbed has started, false when ctx has ended.
func awaitLoad(ctx context.Context, runs string) bool {
	for {
		paths, _ := filepath.Glob(filepath.Join(runs, "*", "events.ndjson"))
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(text), `"kind":"step-started","phase":"run","step":"test.Wait"`) {
				return true
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// strayed checks that only the VM that was moved externally is reported as moved, and that the foreign VM is listed and
// untouched.
func strayed(t *testing.T, rec *record) {
	var strays, left []string
	for _, e := range rec.events {
		switch {
		case e.Unasked:
			strays = append(strays, e.Subject)
		case e.Kind == interval.EventLog && strings.HasPrefix(e.Message, "skipped: VM"):
			left = append(left, e.Message)
		}
	}
	if !slices.Equal(strays, []string{"Stayers-0001"}) {
		t.Errorf("moved externally: %q", strays)
	}
	if want := `skipped: VM "web01" on host-1: Bragg did not make it`; !slices.Contains(left, want) {
		t.Errorf("%q is not reported, only %q", want, left)
	}
	if found := fmt.Sprint(rec.summary.Findings); !strings.Contains(found, "Stayers-0001 moved from host-1 to host-2 between") {
		t.Errorf("no finding tells of the move: %s", found)
	}
}
