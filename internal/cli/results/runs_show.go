package results

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/cli/runref"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// shownRun is what `runs show --json` prints: everything that identifies a run, and whether its bundle is intact.
type shownRun struct {
	runLine
	Manifest result.Manifest  `json:"manifest"`
	Seal     *result.Seal     `json:"seal,omitempty"`
	Intact   *bool            `json:"intact,omitempty"` // nil: not sealed
	Damage   []string         `json:"damage,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Files    map[string]int64 `json:"files"` // every file of the folder, bytes
}

func newRunsShow(p *console.Process) *cobra.Command {
	var runs string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show metadata and integrity of a run",
		Long: "Show prints the metadata of a run: scenario, target, variables, versions, machine. It verifies every file\n" +
			"against the seal; the exit code is 3 if a file was changed, removed or added.\n\n" + runref.Help,
		Example: "  bragg runs show last\n  bragg runs show nightly --json",
		Args:    console.Between(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			b, err := runref.Open(p, p.RunsDirectory(runs), args[0])
			if err != nil {
				return err
			}
			defer b.Close()
			shown, err := showRun(b)
			if err != nil {
				return err
			}
			if asJSON {
				err = p.PrintJSON(shown)
			} else {
				err = printRun(p, shown)
			}
			if err == nil && len(shown.Damage) > 0 {
				return console.ExitWith(diag.ExitUndecided)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.RunsFlag(cmd.Flags(), &runs)
	cmd.ValidArgsFunction = runref.Complete(p, &runs)
	return cmd
}

func showRun(b *result.Bundle) (shownRun, error) {
	shown := shownRun{
		runLine: lineOf(result.Listed{
			Dir: b.Dir(), Manifest: b.Manifest(), State: b.State(), Live: b.Live(), Seal: b.Sealed(),
		}),
		Manifest: b.Manifest(), Seal: b.Sealed(), Files: map[string]int64{},
	}
	if b.Sealed() != nil {
		err := b.VerifySeal()
		intact := err == nil
		shown.Intact = &intact
		shown.Damage = damageLines(err)
	}
	if s, err := b.Summary(); err == nil {
		shown.Reason = s.Reason
	} else if !errors.Is(err, fs.ErrNotExist) {
		shown.Damage = append(shown.Damage, err.Error())
	}
	err := filepath.WalkDir(b.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		name, err := filepath.Rel(b.Dir(), path)
		if err != nil {
			return err
		}
		shown.Files[name] = info.Size()
		return nil
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a file of a running run may vanish
		return shown, fmt.Errorf("list the files of %q: %w", b.Dir(), err)
	}
	return shown, nil
}

// damageLines splits the findings of VerifySeal into one line per file.
func damageLines(err error) []string {
	if err == nil {
		return nil
	}
	joined, ok := errors.Unwrap(err).(interface{ Unwrap() []error })
	if !ok {
		return []string{err.Error()}
	}
	var lines []string
	for _, fault := range joined.Unwrap() {
		lines = append(lines, fault.Error())
	}
	return lines
}

func printRun(p *console.Process, s shownRun) error {
	m := s.Manifest
	t := console.Table{}
	add := func(name, value string) {
		if value != "" {
			t.Add(name, value)
		}
	}
	add("run", s.Run)
	add("label", s.Label)
	add("folder", s.Dir)
	add("scenario", m.Scenario.Name+" — "+m.Scenario.Summary)
	add("preset", m.Scenario.Preset)
	add("target", describeTarget(m.Target))
	if m.Rehearsal != nil {
		add("rehearsal", "of "+unit.FormatDuration(m.Rehearsal.Asked)+": numbers do not describe the full scenario")
	}
	add("started", m.Created.Local().Format(time.RFC3339))
	if s.Duration > 0 {
		add("took", unit.FormatDuration(time.Duration(s.Duration)))
	}
	add("state", s.State)
	add("verdict", strings.TrimSpace(string(s.Verdict)+" "+s.Reason))
	if s.Intact != nil {
		add("seal", map[bool]string{true: "intact", false: "BROKEN"}[*s.Intact])
	}
	for _, line := range s.Damage {
		add("", line)
	}
	add("seed", fmt.Sprint(m.Seed))
	add("command", strings.Join(m.CommandLine, " "))
	addMap(&t, "variable ", m.Scenario.Variables, m.Scenario.Origins)
	for _, workload := range slices.Sorted(maps.Keys(m.Engines)) {
		t.Add("engine of "+workload, m.Engines[workload].String())
	}
	addMap(&t, "", m.Versions, nil)
	addMap(&t, "", m.Environment, nil)
	var total int64
	for _, size := range s.Files {
		total += size
	}
	add("size", fmt.Sprintf("%s in %s", unit.FormatBytes(total), textio.Plural(len(s.Files), "file")))
	return t.Print(p.Stdout)
}

func addMap(t *console.Table, prefix string, values, origins map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		if from := origins[name]; from != "" && from != "default" {
			value += " (" + from + ")"
		}
		t.Add(prefix+name, value)
	}
}

func describeTarget(t result.TargetInfo) string {
	text := fmt.Sprintf("%s, %s", t.Name, textio.Plural(len(t.Nodes), "node"))
	if t.Provider != "" && t.Provider != t.Name {
		text += ", " + t.Provider
	}
	if t.Simulated {
		text += ", SIMULATED"
	}
	return text
}
