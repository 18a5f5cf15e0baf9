// Package console has the process of a command-line program: its arguments, streams and signals, and the printing of errors,
// tables and values. It has no commands; programs build theirs on it.
//
//	main ──▶ New ──▶ Process ──▶ a program's Main ──▶ its verbs ──▶ PrintError ──▶ exit code
//
// Everything that belongs to the process is a field, so that tests run whole commands without starting one.
package console

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/braggdev/bragg/internal/diag"
)

// Process is the state of the operating system's process as commands see it.
type Process struct {
	Name       string   // of the program, as the prefix of its errors: "bragg"
	Arguments  []string // without the program's name
	Getenv     func(string) string
	Directory  string // base of relative paths
	Stdin      io.Reader
	Stdout     io.Writer
	Stderr     io.Writer
	Terminal   bool                       // Stdout is a terminal that a live view may be drawn on
	Size       func() (columns, rows int) // of that terminal; nil: unknown
	Signals    <-chan os.Signal           // interrupt, terminate and hangup; nil: none
	Executable string                     // path of this program, started again for hidden commands
	Exit       func(code int)             // ends the process at once, after a third signal
	Leases     string                     // which leases of machines exclude each other; "": those of all controllers

	listener *listener
	survive  func() (end func()) // keeps the process alive when standard output is closed on the other side; nil: it is a test's
}

// New describes the calling process, a program with the given name. It ends the process if the path of its program is unknown.
func New(name string) Process {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does
		signal.Notify(signals, syscall.SIGHUP)
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: locate the executable: %v\n", name, err)
		os.Exit(diag.ExitInternal)
	}
	directory, err := os.Getwd()
	if err != nil {
		directory = "/"
	}
	return Process{
		Name: name, Arguments: os.Args[1:], Getenv: os.Getenv, Directory: directory, Executable: self,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: term.IsTerminal(int(os.Stdout.Fd())), Size: terminalSize, Signals: signals, Exit: os.Exit,
		survive: survivePipes,
	}
}

// survivePipes makes writes to a closed pipe fail, until the returned function is called; without it they end the process. To ignore
// the signal would do the same for all programs that this one starts.
func survivePipes() (end func()) {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	return func() { signal.Stop(pipes) }
}

// terminalSize returns zeros if standard output is not a terminal.
func terminalSize() (columns, rows int) {
	columns, rows, _ = term.GetSize(int(os.Stdout.Fd()))
	return columns, rows
}

// Path makes a path of the command line absolute.
func (p *Process) Path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Directory, name)
}

// RunsFlag adds --runs, the flag of all commands that read or write runs.
func (p *Process) RunsFlag(flags *pflag.FlagSet, dir *string) {
	flags.StringVar(dir, "runs", "", "runs folder (default $XDG_STATE_HOME/bragg/runs or ~/.local/state/bragg/runs)")
}

// RunsDirectory returns the folder of runs: the value of --runs, otherwise the one below StateDirectory.
func (p *Process) RunsDirectory(flag string) string {
	if flag != "" {
		return p.Path(flag)
	}
	return filepath.Join(p.StateDirectory(), "runs")
}

// StateDirectory is the directory for state by the XDG base directory specification.
func (p *Process) StateDirectory() string {
	state := p.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the specification requires ignoring relative paths
		home := p.Getenv("HOME")
		if home == "" {
			home = "/var/lib"
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "bragg")
}

// AsPath writes the name of a folder so that it cannot be taken for that of a shipped scenario.
func AsPath(dir string) string {
	if strings.ContainsRune(dir, filepath.Separator) {
		return dir
	}
	return "./" + dir
}
