package cli

import (
	"path/filepath"

	"github.com/spf13/pflag"
)

// path makes a path of the command line absolute.
func (p *Process) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Directory, name)
}

// runsFlag adds --runs, which every verb that reads or writes runs has.
func (p *Process) runsFlag(flags *pflag.FlagSet, dir *string) {
	flags.StringVar(dir, "runs", "", "folder that holds the runs (default "+defaultRunsText+")")
}

const defaultRunsText = "$XDG_STATE_HOME/bragg/runs or ~/.local/state/bragg/runs"

// runsDirectory returns the folder of runs: what --runs says, else the place that the XDG base directory specification
// gives to state.
func (p *Process) runsDirectory(flag string) string {
	if flag != "" {
		return p.path(flag)
	}
	state := p.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the specification has relative paths ignored
		home := p.Getenv("HOME")
		if home == "" {
			home = "/var/lib"
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "bragg", "runs")
}
