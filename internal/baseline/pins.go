package baseline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/result"
)

const (
	pinsFile = "baselines.json" // in the runs folder
	format   = 1
	// RunsMax bounds the pinned runs of one scenario: more narrow no interval that matters.
	RunsMax = 50
	// pinsBytesMax bounds the file: thousands of scenarios.
	pinsBytesMax = 16 << 20
)

// Pins are the pinned runs of a runs folder, by scenario.
type Pins struct {
	Format    int            `json:"baselines_format"`
	Baselines map[string]Pin `json:"baselines"`
}

// Pin is the baseline of one scenario.
type Pin struct {
	Pinned time.Time   `json:"pinned"`
	Runs   []PinnedRun `json:"runs"`
}

// PinnedRun names a run, and the hash of its seal.
type PinnedRun struct {
	Run  string `json:"run"` // its folder in the runs folder
	Seal string `json:"seal_sha256"`
}

// Names are the ids of the pinned runs.
func (p *Pin) Names() []string {
	var list []string
	for _, r := range p.Runs {
		list = append(list, r.Run)
	}
	return list
}

// Read reads the pins of a runs folder; there are none without the file.
func Read(runs string) (*Pins, error) {
	p := &Pins{Format: format, Baselines: map[string]Pin{}}
	path := filepath.Join(runs, pinsFile)
	text, err := durable.ReadFile(path, pinsBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, &diag.Error{Code: "baseline", Exit: diag.ExitData, Message: "read pinned baselines in " + path, Err: err,
			Hint: "repair or remove the file, and pin the runs again"}
	}
	if p.Baselines == nil {
		p.Baselines = map[string]Pin{}
	}
	return p, nil
}

func (p *Pins) check() error {
	if p.Format > format {
		return fmt.Errorf("format %d is newer than this program supports (%d)", p.Format, format)
	}
	for scenario, pin := range p.Baselines {
		if len(pin.Runs) == 0 || len(pin.Runs) > RunsMax {
			return fmt.Errorf("the baseline of %.100q has %d runs, not 1 to %d", scenario, len(pin.Runs), RunsMax)
		}
		for _, run := range pin.Names() {
			if run != filepath.Base(run) || !filepath.IsLocal(run) {
				return fmt.Errorf("the baseline of %.100q has a run %.100q, which is not a folder of the runs folder", scenario, run)
			}
		}
	}
	return nil
}

func (p *Pins) write(runs string) error {
	text, err := json.MarshalIndent(p, "", " ")
	if err == nil {
		err = durable.WriteFile(filepath.Join(runs, pinsFile), append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write pinned baselines: %w", err)
	}
	return nil
}

// change changes the pins of a runs folder, one process at a time. The lock is on the folder, as the file is replaced.
func change(runs string, apply func(*Pins) bool) error {
	release, err := durable.LockDir(runs, unix.LOCK_EX)
	if err != nil {
		return fmt.Errorf("write pinned baselines: %w", err)
	}
	defer release()
	p, err := Read(runs)
	if err != nil || !apply(p) {
		return err
	}
	return p.write(runs)
}

// Of returns the scenario whose baseline contains a run, "" if none does.
func (p *Pins) Of(run string) string {
	for name, pin := range p.Baselines {
		if slices.Contains(pin.Names(), run) {
			return name
		}
	}
	return ""
}

// Set pins runs of a runs folder, which replace the earlier baseline of their scenario. They must have completed, be valid, and be
// repetitions of each other.
func Set(runs string, ids []string, now time.Time) (scenario string, err error) {
	if len(ids) > RunsMax {
		return "", refuse(fmt.Sprintf("pin %d runs", len(ids)), fmt.Sprintf("at most %d", RunsMax))
	}
	pin := Pin{Pinned: now.UTC()}
	var first Run
	for i, id := range ids {
		if slices.Contains(pin.Names(), id) {
			continue
		}
		r, seal, err := open(runs, id)
		if err != nil {
			return "", err
		}
		if i == 0 {
			first = r
		} else if other := differing(first.Factors, r.Factors); len(other) > 0 {
			return "", refuse(fmt.Sprintf("pin run %s with run %s: %s", id, first.Run, strings.Join(other[:min(len(other), clausesMax)], ", ")),
				"the runs of a baseline are repetitions of each other")
		}
		pin.Runs = append(pin.Runs, PinnedRun{id, seal})
	}
	scenario = first.Factors[0].Value
	return scenario, change(runs, func(p *Pins) bool { p.Baselines[scenario] = pin; return true })
}

// Unset removes the baseline of a scenario, and returns false if it has none.
func Unset(runs, scenario string) (bool, error) {
	var pinned bool
	return pinned, change(runs, func(p *Pins) bool {
		_, pinned = p.Baselines[scenario]
		delete(p.Baselines, scenario)
		return pinned
	})
}

// Of returns the pinned numbers of a scenario. What prevents that is in Missing: it must not stop a run.
func Of(runs, scenario string) *Baseline {
	b := &Baseline{Runs: []Run{}}
	p, err := Read(runs)
	if err != nil {
		b.Missing = err.Error()
		return b
	}
	pin, pinned := p.Baselines[scenario]
	if !pinned {
		b.Missing = "no baseline is pinned for scenario " + scenario + " (bragg baseline set RUN)"
		return b
	}
	for _, run := range pin.Runs {
		r, seal, err := open(runs, run.Run)
		switch {
		case err != nil:
			b.Missing = err.Error()
		case seal != run.Seal:
			b.Missing = "run " + run.Run + " is not the one that was pinned: its seal differs"
		}
		if b.Missing != "" {
			return b
		}
		b.Runs = append(b.Runs, r)
	}
	return b
}

// open reads a run that is or becomes a baseline, and the hash of its seal.
func open(runs, id string) (Run, string, error) {
	b, err := result.Open(filepath.Join(runs, id))
	if err != nil {
		return Run{}, "", fmt.Errorf("read pinned run %s: %w", id, err)
	}
	defer b.Close()
	seal := b.Sealed()
	switch {
	case seal == nil || seal.Ended != result.EndedCompleted:
		return Run{}, "", refuse("run "+id+" did not complete", "a baseline needs completed runs")
	case seal.Validity == result.Invalid:
		return Run{}, "", refuse("run "+id+" is INVALID", "its numbers decide nothing")
	}
	for _, d := range b.Differences() {
		if d.Read {
			return Run{}, "", refuse("run "+id+" was modified after sealing: "+d.Name+" "+d.How, "its numbers may be wrong")
		}
	}
	text, err := json.Marshal(seal)
	if err != nil {
		return Run{}, "", fmt.Errorf("hash the seal of run %s: %w", id, err)
	}
	sum := sha256.Sum256(text)
	r, err := runOf(b)
	return r, hex.EncodeToString(sum[:]), err
}

func refuse(message, hint string) error {
	return &diag.Error{Code: "baseline", Exit: diag.ExitUsage, Message: message, Hint: hint}
}
