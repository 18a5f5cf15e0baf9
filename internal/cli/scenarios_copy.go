package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/scenarios"
)

// copiedScenario is what `scenarios copy --json` prints.
type copiedScenario struct {
	Scenario string   `json:"scenario"`
	Dir      string   `json:"dir"`
	Files    []string `json:"files"`
}

func newScenariosCopy(p *console.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "copy NAME DIR",
		Short: "Copy a built-in scenario to a folder",
		Long: "Copy writes test.yml and the job files of a built-in scenario to DIR, which must be empty or not exist.\n" +
			"It overwrites nothing. A new folder is created with all files or not at all.",
		Example: "  bragg scenarios copy db_colocation ./my_colocation\n  bragg plan ./my_colocation",
		Args:    console.Between(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			copied, err := copyScenario(p, args[0], args[1])
			if err != nil {
				return err
			}
			if asJSON {
				return p.PrintJSON(copied)
			}
			word := console.AsPath(args[1])
			_, err = fmt.Fprintf(p.Stdout, "copied %s: %s\n\nEdit %s, then: %s\n", args[0], strings.Join(copied.Files, ", "),
				textio.Lines(filepath.Join(copied.Dir, "test.yml")), textio.Shell("bragg", "plan", word))
			return err
		},
		ValidArgsFunction: completeScenarios,
	}
	console.JSONFlag(cmd.Flags(), &asJSON)
	return cmd
}

// copyScenario copies one shipped scenario.
func copyScenario(p *console.Process, name, dir string) (copiedScenario, error) {
	copied := copiedScenario{Scenario: name, Dir: p.Path(dir)}
	names, err := shipped()
	if err != nil {
		return copied, err
	}
	if !slices.Contains(names, name) {
		e := &diag.Error{Code: "no-scenario", Message: "unknown scenario " + strconv.Quote(name), Exit: diag.ExitUsage,
			Hint: "bragg scenarios lists the built-in ones"}
		if near := diag.Nearest(name, names); near != "" {
			e.Hint = "did you mean " + near + "?"
		}
		return copied, e
	}
	source, err := fs.Sub(scenarios.FS, name)
	if err != nil {
		return copied, err
	}
	there, err := vacant(copied.Dir)
	if err != nil {
		return copied, err
	}
	if there {
		copied.Files, err = copyFiles(source, copied.Dir)
		return copied, err
	}
	if err := os.MkdirAll(filepath.Dir(copied.Dir), 0o755); err != nil {
		return copied, err
	}
	part, err := os.MkdirTemp(filepath.Dir(copied.Dir), "."+filepath.Base(copied.Dir)+".part-*")
	if err != nil {
		return copied, err
	}
	defer os.RemoveAll(part) // by then its content has been moved, or is incomplete
	inside := filepath.Join(part, "scenario")
	if copied.Files, err = copyFiles(source, inside); err != nil {
		return copied, err
	}
	return copied, os.Rename(inside, copied.Dir)
}

// copyFiles copies files into a folder and returns their names. Embedded files are read-only, but the copies are for editing.
func copyFiles(source fs.FS, dir string) (names []string, err error) {
	if err := os.CopyFS(dir, source); err != nil {
		return nil, fmt.Errorf("copy scenario to %q: %w", dir, err)
	}
	err = fs.WalkDir(source, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		names = append(names, path)
		return os.Chmod(filepath.Join(dir, path), 0o644)
	})
	return names, err
}

// vacant refuses an occupied place. An empty folder exists and is vacant.
func vacant(dir string) (there bool, err error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) == 0 {
		return true, nil
	}
	return true, &diag.Error{Code: "exists", Message: strconv.Quote(dir) + " already exists", Exit: diag.ExitUsage,
		Hint: "choose another folder, or remove this one"}
}
