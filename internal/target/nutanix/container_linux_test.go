package nutanix

import (
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// Settings of the container are changed where that is allowed, and restored by another controller after this one died.
func TestContainerSettings(t *testing.T) {
	r := newRig(t, prism.Options{State: state.Options{Hosts: 6}})
	tag, dir := targettest.NewTag("run-1"), t.TempDir()
	reopen := func() *Target {
		t.Helper()
		l, err := open(t.Context(), r.config, target.OpenOptions{Dir: dir}, quick)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l.(*Target)
	}
	l := reopen()
	read := func() target.ContainerSettings {
		t.Helper()
		if _, err := l.cluster.known(t.Context()); err != nil {
			t.Fatal(err)
		}
		c, err := l.cluster.ahv.Container(t.Context(), l.cluster.container.Key())
		if err != nil {
			t.Fatal(err)
		}
		return settingsOf(c)
	}
	before := read()
	yes, no, delay := true, false, time.Hour
	change := target.ContainerSettings{Compression: &yes, CompressionDelay: &delay, ErasureCoding: &yes}
	if err := l.SetContainer(t.Context(), tag, change); diag.ExitCode(err) != diag.ExitRefused {
		t.Errorf("got %v, want a refusal", err)
	}
	r.config.Allow.ContainerSettings = true
	l = reopen()
	r.Faults.Add(faults.Rule{Request: "PUT /api/clustermgmt/*/config/storage-containers/*", Status: 412, Times: 1})
	if err := l.SetContainer(t.Context(), tag, change); err != nil {
		t.Fatal(err)
	}
	if got := read(); !*got.Compression || *got.CompressionDelay != delay || !*got.ErasureCoding || got.Replication != before.Replication {
		t.Errorf("settings are %+v", got)
	}
	if err := l.SetContainer(t.Context(), tag, target.ContainerSettings{Compression: &no, Replication: 3}); err != nil {
		t.Fatal(err)
	}
	if got := read(); *got.Compression || got.Replication != 3 || !*got.ErasureCoding {
		t.Errorf("settings are %+v", got)
	}
	l = reopen()
	for range 2 { // again without effect
		if err := l.RestoreContainer(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
	}
	got := read()
	if *got.Compression != *before.Compression || *got.CompressionDelay != *before.CompressionDelay || *got.ErasureCoding != *before.ErasureCoding ||
		got.Replication != before.Replication {
		t.Errorf("settings are %+v, want %+v", got, before)
	}
}
