package loadtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/braggdev/bragg/internal/load"
)

// Endpoint fills the database of a workload and holds its PostgreSQL for the test, as a server that the user has. It returns its socket. The
// workload gets a disk in a folder of its own, whose path is short enough for sockets, and this process starts there.
func Endpoint(t *testing.T, g load.Generator, w load.Workload) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "bragg-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	w.Devices = []load.Device{{Name: "/dev/sdb", Path: filepath.Join(dir, "sdb"), SizeBytes: 8 << 30}}
	if err := os.WriteFile(w.Devices[0].Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fill := w
	fill.Prefill = true
	if err := Drive(t.Context(), g, fill, &Log{}); err != nil {
		t.Fatal(err)
	}
	held, err := g.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	sockets, err := filepath.Glob(dir + "/*/sdb/run/.s.PGSQL.5432")
	if err != nil || len(sockets) != 1 {
		t.Fatal(sockets, err)
	}
	return sockets[0]
}
