package result_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

func manifest(run string) result.Manifest {
	return result.Manifest{
		Run: run, Created: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Scenario: result.ScenarioInfo{Name: "four_corners"},
		Target:   result.TargetInfo{Provider: "fake", Name: "fake:4", Nodes: []result.NodeInfo{{ID: "node-1", Name: "node-1"}}},
	}
}

func anInterval(second int64) interval.Interval {
	iv := interval.Interval{
		Workload: "OLTP", Group: "g", VM: "g-0001", Instance: 1, Sequence: second,
		StartNanos: second * 1e9, LengthNanos: 1e9,
	}
	iv.Directions[interval.Read] = interval.Traffic{Operations: 3, Bytes: 3 << 12, Service: &stat.Histogram{}}
	for i := range uint64(3) {
		iv.Directions[interval.Read].Service.Record(100_000*(i+1) + uint64(second))
	}
	return iv
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	w, err := result.Create(dir, manifest("run-1"))
	if err != nil {
		t.Fatal(err)
	}
	for s := range int64(10) {
		if err := w.Interval(anInterval(s)); err != nil {
			t.Fatal(err)
		}
		if err := w.Event(interval.Event{AtNanos: s, Kind: interval.EventLog, Message: "m"}); err != nil {
			t.Fatal(err)
		}
		err := w.Sample(result.Sample{AtNanos: s, Name: "a", Labels: map[string]string{"vm": "x"}, Value: float64(s)},
			result.Sample{AtNanos: s, Name: "a", Labels: map[string]string{"vm": "y"}, Value: 2})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Seal(result.Summary{Verdict: result.Pass, Ended: result.EndedCompleted}); err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.VerifySeal(); err != nil {
		t.Error(err)
	}
	var intervals, events, samples int
	for iv, err := range b.Intervals() {
		if err != nil || iv.Directions[interval.Read].Service.Count() != 3 {
			t.Fatal(iv, err)
		}
		intervals++
	}
	for _, err := range b.Events() {
		if err != nil {
			t.Fatal(err)
		}
		events++
	}
	for s, err := range b.Samples() {
		if err != nil || s.Labels["vm"] == "" {
			t.Fatal(s, err)
		}
		samples++
	}
	if intervals != 10 || events != 10 || samples != 20 {
		t.Errorf("read %d intervals, %d events, %d samples", intervals, events, samples)
	}
	if _, err := os.Stat(filepath.Join(dir, ".reserve")); err == nil {
		t.Error("the reserve was not given back")
	}
}

// TestFileInPlaceOfAttachments: a file instead of the folder is damage, and attachments are not read from it.
func TestFileInPlaceOfAttachments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run-1")
	w, err := result.Create(dir, manifest("run-1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), os.WriteFile(filepath.Join(dir, "attachments"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if names, err := b.Attachments(); !errors.Is(err, result.ErrDamaged) {
		t.Errorf("%q, %v", names, err)
	}
}

// TestReplacedFolder: a report goes into the folder that was opened, also if there is a link to another one in its place by now.
func TestReplacedFolder(t *testing.T) {
	runs, outside := t.TempDir(), t.TempDir()
	dir, moved := filepath.Join(runs, "run-1"), filepath.Join(runs, "moved")
	w, err := result.Create(dir, manifest("run-1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := errors.Join(os.Rename(dir, moved), os.Symlink(outside, dir)); err != nil {
		t.Fatal(err)
	}
	err = b.ReplaceFile("report.html", func(w io.Writer) error {
		_, err := io.WriteString(w, "report")
		return err
	})
	text, readErr := os.ReadFile(filepath.Join(moved, "report.html"))
	if err != nil || readErr != nil || string(text) != "report" {
		t.Errorf("%v, %v: %q", err, readErr, text)
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("outside: %v", entries)
	}
}

// TestRemoveIncomplete: a folder without a manifest is deleted only if all in it is what a run makes before its manifest.
func TestRemoveIncomplete(t *testing.T) {
	runs := t.TempDir()
	at := func(name string) string { return filepath.Join(runs, name) }
	err := errors.Join(os.MkdirAll(at("run/vms/a"), 0o700), os.WriteFile(at("run/events.ndjson"), nil, 0o600), os.Mkdir(at("photos"), 0o700),
		os.WriteFile(at("photos/events.ndjson"), nil, 0o600), os.WriteFile(at("photos/1.jpg"), nil, 0o600), os.Symlink("photos", at("link")))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]error{"run": nil, "none": nil, "photos": durable.ErrForeign, "link": durable.ErrForeign} {
		if err := result.RemoveIncomplete(runs, id); !errors.Is(err, want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	for name, kept := range map[string]bool{"run": false, "photos/1.jpg": true, "link": true} {
		if _, err := os.Lstat(at(name)); kept != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOpenIn: the name of a run leads to a folder of the runs folder, and through no link.
func TestOpenIn(t *testing.T) {
	runs := t.TempDir()
	w, err := result.Create(filepath.Join(runs, "run"), result.Manifest{Run: "run"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), os.Symlink("run", filepath.Join(runs, "link"))); err != nil {
		t.Fatal(err)
	}
	b, err := result.OpenIn(runs, "run")
	if err != nil {
		t.Fatal(err)
	}
	if b.Dir() != filepath.Join(runs, "run") || b.Manifest().Run != "run" {
		t.Errorf("%s, %+v", b.Dir(), b.Manifest())
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"link", "../run", "none"} {
		if _, err := result.OpenIn(runs, id); err == nil {
			t.Errorf("%s was opened", id)
		}
	}
}
