package iohosts

import (
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
