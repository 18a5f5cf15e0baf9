package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

const measured = `package m

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// The first process that a program of Go starts needs another one: the os package looks whether the kernel has pidfds.
func TestFirst(t *testing.T) {
	if err := exec.Command("true").Run(); err != nil {
		t.Fatal(err)
	}
}

func TestBusy(t *testing.T) {
	for began := time.Now(); time.Since(began) < 500*time.Millisecond; {
	}
}

func TestSleeps(t *testing.T) { time.Sleep(500 * time.Millisecond) }

func TestStarts(t *testing.T) {
	time.Sleep(200 * time.Millisecond) // what happens before the profile has read that the test runs is not counted for it
	for range 3 {
		if err := exec.Command("sh", "-c", "sh -c 'exit 0'; exit 0").Run(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWrites(t *testing.T) {
	f, err := os.Create("written")
	if err == nil {
		_, err = f.Write(make([]byte, 4<<20))
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestA(t *testing.T) { t.Parallel(); time.Sleep(100 * time.Millisecond) }
func TestB(t *testing.T) { t.Parallel(); time.Sleep(100 * time.Millisecond) }

func TestFails(t *testing.T) { t.Fatal("as it should") }
`

// TestProfile measures tests of which is known what they need.
func TestProfile(t *testing.T) {
	testreq.Root(t) // process events
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.test/m\n\ngo 1.26\n", "m_test.go": measured, "none/none.go": "package none\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var out bytes.Buffer
	failed, err := profile(t.Context(), &out, options{rows: 10, patterns: []string{"./..."}})
	if err != nil || !failed {
		t.Fatalf("failed: %v, %v\n%s", failed, err, out.String())
	}
	for _, want := range []string{"CPU time: ", "as it should", "FAIL example.test/m\n", "~example.test/m TestA\n", " example.test/m TestBusy\n", "1 packages\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
	for _, group := range slices.Compact([]string{groupRoot(), ""}) {
		t.Run("group "+group, func(t *testing.T) { checkCosts(t, dir, group) })
	}
}

// checkCosts compares the costs of the tests with each other.
func checkCosts(t *testing.T, dir, group string) {
	f, err := connect()
	if err != nil {
		testreq.Skip(t, "no process events: "+err.Error())
	}
	defer f.close()
	binary := filepath.Join(t.TempDir(), "m.test")
	p := listedPackage{"example.test/m", dir}
	b, err := build(t.Context(), p, binary)
	if err != nil || !b.Tests || b.Link <= 0 {
		t.Fatalf("%+v, %v", b, err)
	}
	c, err := runPackage(t.Context(), &bytes.Buffer{}, options{}, p, binary, group, f)
	if err != nil || c.Result != "FAIL" {
		t.Fatalf("%+v, %v", c, err)
	}
	tests := map[string]testCost{}
	for _, one := range c.Tests {
		tests[one.Test] = one
	}
	busy, sleeps, starts, writes := tests["TestBusy"], tests["TestSleeps"], tests["TestStarts"], tests["TestWrites"]
	if len(c.Tests) != 8 || busy.CPU <= 5*sleeps.CPU || sleeps.waiting() <= sleeps.CPU || !tests["TestA"].Shared || busy.Shared {
		t.Errorf("%+v", c.Tests)
	}
	if starts.Processes != 6 || busy.Processes != 0 || c.Processes < 7 {
		t.Errorf("%d processes, of the package %d, want 6 and at least 7", starts.Processes, c.Processes)
	}
	var system syscall.Statfs_t
	if err := syscall.Statfs(dir, &system); err != nil {
		t.Fatal(err)
	}
	const tmpfs = 0x01021994
	if system.Type != tmpfs && (writes.Written < 4<<20 || busy.Written > 1<<20) {
		t.Errorf("%d bytes were written, and %d while nothing wrote", writes.Written, busy.Written)
	}
	if len(c.Left) > 0 {
		t.Errorf("left: %q", c.Left)
	}
}
