package lab

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
)

// The folder of a lab that was killed while it was described goes, and a folder that holds anything else stays as it is.
func TestSweepEmpty(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files, folders []string
		goes           bool
	}{
		{nil, nil, true},
		{[]string{durable.Unfinished + "123"}, nil, true},
		{[]string{durable.Unfinished + "123", durable.Unfinished + "4", stateFile + ".new"}, nil, true},
		{[]string{"precious"}, nil, false},
		{[]string{durable.Unfinished + "123", "precious"}, nil, false},
		{nil, []string{durable.Unfinished + "123"}, false},
	} {
		o := Options{Labs: t.TempDir(), Name: "x"}
		dir := filepath.Join(o.Labs, o.Name)
		err := os.Mkdir(dir, 0o700)
		for _, name := range c.files {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600))
		}
		for _, name := range c.folders {
			err = errors.Join(err, os.Mkdir(filepath.Join(dir, name), 0o700))
		}
		if err != nil {
			t.Fatal(err)
		}
		err = sweepEmpty(&o)
		left, listErr := os.ReadDir(dir)
		if c.goes && (err != nil || !errors.Is(listErr, fs.ErrNotExist)) {
			t.Errorf("%q: %v, left are %v", c.files, err, left)
		}
		if !c.goes && (diag.ExitCode(err) != diag.ExitRefused || len(left) != len(c.files)+len(c.folders)) {
			t.Errorf("%q, %q: %v, left are %v", c.files, c.folders, err, left)
		}
	}
	if err := sweepEmpty(&Options{Labs: t.TempDir(), Name: "x"}); err != nil {
		t.Errorf("no folder: %v", err)
	}
}

// After a signal no further removal begins, and the next call does what is left.
func TestDownStops(t *testing.T) {
	t.Parallel()
	labs := t.TempDir()
	for _, name := range []string{"one", "two"} {
		l := &Lab{Format: stateFormat, ID: "0123456" + name, Name: name, Folder: Folder{Dir: filepath.Join(labs, name)}, Interface: "lab-none-" + name}
		if err := errors.Join(os.Mkdir(l.Dir, 0o700), l.save()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if removed, err := Down(ctx, labs, nil, true); !errors.Is(err, context.Canceled) || len(removed) != 0 {
		t.Errorf("stopped: %q, %v", removed, err)
	}
	if all, err := Labs(labs); err != nil || len(all) != 2 {
		t.Errorf("left are %v, %v", all, err)
	}
	if removed, err := Down(t.Context(), labs, nil, true); err != nil || strings.Join(removed, " ") != "one two" {
		t.Errorf("%q, %v", removed, err)
	}
}
