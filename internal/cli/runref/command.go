package runref

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/textio"
)

// CleanCommand is the shell command that removes what the run of a bundle has left.
func CleanCommand(p *console.Process, bundle string) string {
	return CommandIn(p, filepath.Dir(bundle), "clean", filepath.Base(bundle))
}

// CommandIn is a complete shell command of this program for a runs folder, so that it works when copied.
func CommandIn(p *console.Process, runs string, words ...string) string {
	words = append([]string{"bragg"}, words...)
	if runs != p.RunsDirectory("") {
		words = append(words, "--runs", runs)
	}
	return textio.Shell(words...)
}

// WarnOfWriters warns of a runs folder in which others can put or replace what later commands read.
func WarnOfWriters(p *console.Process, runs string) {
	const othersWrite = 0o022
	info, err := os.Stat(runs)
	if err != nil || info.Mode().Perm()&othersWrite == 0 {
		return
	}
	fmt.Fprintf(p.Stderr, "%s: warning: the runs folder %s is writable by other users (mode %v): they can replace runs and reports\n  %s\n",
		p.Name, strconv.Quote(runs), info.Mode().Perm(), textio.Lines(textio.Shell("chmod", "go-w", runs)))
}
