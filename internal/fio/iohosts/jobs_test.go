package iohosts

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// What bragg io can do on one machine it can do on hosts.
func TestHostsReadJobsAsBraggIODoes(t *testing.T) {
	jobs := Jobs{Inputs: []fiojob.Input{{Name: "t", Text: "[a]\nsize=1m\nexitall\nunlink=1\nwrite_iolog=x\n[b]\nsize=1m\nwait_for=a\nopendir=y\n"}}}
	file, err := jobs.read(identity{}, Surroundings{})
	if err != nil {
		t.Fatal(err)
	}
	all := file.Jobs()
	if a, b := &all[0], &all[1]; !a.Control.ExitAll || !a.Layout.Unlink || b.Control.WaitFor != "a" || b.Layout.OpenDir != "y" {
		t.Errorf("%+v, %+v", a, b)
	}
}

// What the texts include reaches the hosts with them.
func TestTextsOfFiles(t *testing.T) {
	files := textFS{"dir/a.fio": "[a]\n", "pattern": "xyz", "empty": ""}
	for name, text := range files {
		info, err := fs.Stat(files, name)
		if err != nil || info.Size() != int64(len(text)) || !info.Mode().IsRegular() || info.IsDir() {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
		for range 2 {
			if got, err := fs.ReadFile(files, name); err != nil || string(got) != text {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
	if _, err := fs.Stat(files, "other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
