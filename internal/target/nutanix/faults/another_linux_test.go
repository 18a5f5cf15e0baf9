package faults

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/testreq"
)

// Cleaning does not take another cluster, which answers at the address of the run's, for the one that has its VMs.
func TestAnotherClusterAtTheAddress(t *testing.T) {
	if testing.Short() {
		t.Skip("a run of a scenario, on agents")
	}
	testreq.Root(t)
	t.Parallel()
	r := newRig(t, false)
	text, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	before, after, _ := strings.Cut(string(text), "fingerprint:")
	_, after, _ = strings.Cut(after, "\n")
	r.write(t, r.file, before+"tls: unverified\n"+after)
	runs := filepath.Join(r.dir, "runs")
	r.die(t, order{File: r.file, Runs: runs, Failpoint: "vms.created"})

	at, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	o := prism.Options{Listen: at.Host}
	o.Credentials.Password = password
	other, err := prism.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	cleaned, err := session.Clean(t.Context(), session.Cleaning{Runs: runs, Program: program(runs)})
	if err != nil || len(cleaned) != 1 || cleaned[0].Err == nil || !strings.Contains(cleaned[0].Err.Error(), "at the same address") || len(cleaned[0].Undone) > 0 {
		t.Errorf("got %+v, %v", cleaned, err)
	}
	if left, err := session.Unfinished(runs); err != nil || len(left) != 1 {
		t.Errorf("the run is forgotten: %q, %v", left, err)
	}
}
