// Package labtest gives a test a lab of its own, with a name that no other has, and removes it after the test. When the
// test's process is killed, the lab ends with it; what is left when the lab's processes are killed too is removed when the
// next lab is made.
package labtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/testreq"
)

// upTimeLimit only guards against hanging.
const upTimeLimit = 10 * time.Minute

// handled is set by Main.
var handled bool

// Main must be called first in TestMain of a package with labs: the test binary is re-executed as parts of labs.
func Main() {
	handled = true
	if lab.Started(os.Args[1:]) {
		os.Exit(lab.Main(os.Args[2:]))
	}
}

// Labs is the folder of the labs of all tests on this machine.
func Labs() string { return filepath.Join(os.TempDir(), "bragg-labs") }

// Name draws a name for a lab.
func Name() string {
	var id [6]byte
	_, _ = rand.Read(id[:]) // it never fails
	return "t" + hex.EncodeToString(id[:])
}

// Options completes what a lab of a test is made with. It skips where this machine lacks what such a lab needs.
func Options(t testing.TB, o lab.Options) lab.Options {
	t.Helper()
	if !handled {
		t.Fatal("TestMain of this package must call labtest.Main first")
	}
	testreq.Root(t)
	if err := o.CheckPrograms(); err != nil {
		testreq.Skip(t, err.Error())
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Program, o.Attached, o.Say = program, true, func(text string) { t.Log(text) }
	if o.Labs == "" {
		o.Labs = Labs()
	}
	if o.Name == "" {
		o.Name = Name()
	}
	return o
}

// New makes a lab for the time of the test.
func New(t testing.TB, o lab.Options) *lab.Lab {
	t.Helper()
	o = Options(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), upTimeLimit)
	defer cancel()
	l, hold, err := lab.Up(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.LastWords())
		}
		removed, err := lab.Down(context.Background(), o.Labs, []string{l.Name}, false)
		if err != nil {
			t.Errorf("remove lab %q: %v", l.Name, err)
		} else if !slices.Contains(removed, l.Name) {
			t.Errorf("lab %q was gone before the test ended", l.Name)
		}
		_ = hold.Close() // the keeper at its other end is gone
		for _, left := range testreq.ProcessesNaming(t, l.Dir) {
			t.Errorf("lab %q left process %s", l.Name, left)
		}
	})
	return l
}
