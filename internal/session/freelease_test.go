package session_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/session"
)

// The note of a lease may be unusable: this is reported and kept for the next cleanup, and does not cause a failure.
func TestCleanToldOfLeasesItCannotReach(t *testing.T) {
	runs := t.TempDir()
	control := filepath.Join(runs, ".control")
	if err := os.Mkdir(control, 0o700); err != nil {
		t.Fatal(err)
	}
	notes := map[string]string{
		"lease-cut.target":  `{"config":{`,
		"lease-gone.target": `{"config":{"provider":"no such one"},"lease":"gone"}`,
	}
	for name, text := range notes {
		if err := os.WriteFile(filepath.Join(control, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	cleaned, err := session.Clean(t.Context(), session.Cleaning{Runs: runs, Program: program(runs), Say: func(about, _ string) { told = append(told, about) }})
	if err != nil || len(cleaned) > 0 {
		t.Errorf("cleaned %+v, %v", cleaned, err)
	}
	if slices.Sort(told); !slices.Equal(told, []string{"lease", "lease of gone"}) {
		t.Errorf("told of %q", told)
	}
	for name := range notes {
		if _, err := os.Stat(filepath.Join(control, name)); err != nil {
			t.Error(err)
		}
	}
}
