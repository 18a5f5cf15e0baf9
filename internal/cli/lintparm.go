package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/load/vdbench"
)

// otherExtensions are those of other files than parameter files of vdbench.
var otherExtensions = []string{".yml", ".yaml", ".zip", ".fio"}

// isParameterFile reports whether a word of the command line is a parameter file of vdbench: the path of any other file. A path contains a
// slash or a dot.
func isParameterFile(p *console.Process, word string) bool {
	if !strings.ContainsAny(word, "/.") || slices.Contains(otherExtensions, strings.ToLower(filepath.Ext(word))) {
		return false
	}
	info, err := os.Stat(p.Path(word))
	return err == nil && info.Mode().IsRegular()
}

// parameterBytesMax is more than what is read of parameter files, so that a longer one is refused.
const parameterBytesMax = 8 << 20

// lintParameters checks one parameter file, with the values of its variables.
func lintParameters(_ context.Context, p *console.Process, word string, c *choice) (linted, error) {
	one := linted{Scenario: word, Findings: []finding.Finding{}, file: true}
	options, err := c.options()
	if err != nil {
		return one, err
	}
	f, err := os.Open(p.Path(word))
	if err != nil {
		return one, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, parameterBytesMax))
	if err != nil {
		return one, err
	}
	checked := vdbench.Check(word, string(text), options.Set)
	for _, d := range checked.Issues {
		if d.Code == vdbench.UnsetVariable {
			d.Hint = "give it a value with --set NAME=VALUE"
		}
		one.Errors.Add(d)
	}
	one.Runs = checked.Runs
	return one, nil
}
