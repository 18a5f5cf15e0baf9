// Package program runs other programs as loads: benchmarks, and the servers that they need. It knows nothing about any one of
// them, and uses no shell: every command is a list of words that its caller wrote.
//
//	load.Need ──Find──▶ Tools: paths and versions, or one error with all that is missing and the packages that bring it
//	Command ──Start──▶ Process, which ends with this process ──Wait──▶ its end
//	its output ──▶ Tail for error messages, Transcript for the bundle
//	its operations ──Recorder──▶ Intervals; on VMs in memory, Simulated replaces it
package program

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
)

// Tool is an installed program.
type Tool struct {
	Path    string
	Version string // "15.18"
}

// Major is the first number of its version.
func (t Tool) Major() int {
	first, _, _ := strings.Cut(t.Version, ".")
	n, _ := strconv.Atoi(first)
	return n
}

// AtLeast reports whether it is that version or newer.
func (t Tool) AtLeast(version string) bool { return !newer(version, t.Version) }

// versionWithin bounds how long a program may take to print its version.
const versionWithin = 20 * time.Second

// Find returns the tools for needs, by the names of their programs. If some are missing or too old, the error names all of them.
// Folders are patterns of further places than PATH, where a package keeps several versions side by side; the newest counts.
func Find(ctx context.Context, needs []load.Need, folders ...string) (map[string]Tool, error) {
	tools := map[string]Tool{}
	var faults []string
	var missing []load.Need
	for _, n := range needs {
		tool, err := find(ctx, n, folders)
		if err != nil {
			faults, missing = append(faults, err.Error()), append(missing, n)
			continue
		}
		tools[n.Program] = tool
	}
	if len(faults) == 0 {
		return tools, nil
	}
	return nil, &diag.Error{
		Code: "program-missing", Exit: diag.ExitUnavailable,
		Message: "find programs on this machine: " + strings.Join(faults, "; "),
		Hint:    hint(missing),
	}
}

func find(ctx context.Context, n load.Need, folders []string) (Tool, error) {
	var newest Tool
	var broken error
	for _, path := range places(n.Program, folders) {
		version, err := versionOf(ctx, path)
		if err != nil {
			broken = fmt.Errorf("ask %q for its version: %w", path, err)
		} else if newest.Path == "" || newer(version, newest.Version) {
			newest = Tool{Path: path, Version: version}
		}
	}
	switch {
	case newest.Path == "" && broken != nil:
		return Tool{}, broken
	case newest.Path == "":
		return Tool{}, fmt.Errorf("no %s", n.Program)
	case n.Oldest != "" && newer(n.Oldest, newest.Version):
		return Tool{}, fmt.Errorf("%s is version %s, want %s or newer", n.Program, newest.Version, n.Oldest)
	}
	return newest, nil
}

// places lists the programs with that name. A script that chooses among versions, as Debian's pg_wrapper does, is left out: it
// would be in the way of signals.
func places(name string, folders []string) (paths []string) {
	for _, pattern := range folders {
		found, _ := filepath.Glob(filepath.Join(pattern, name))
		paths = append(paths, found...)
	}
	if path, err := exec.LookPath(name); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Base(real) == name {
			paths = append(paths, real)
		}
	}
	return paths
}

var versionPattern = regexp.MustCompile(`\d+(\.\d+)*`)

// VersionText returns what a program prints with --version. What it starts ends with it.
func VersionText(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, versionWithin, fmt.Errorf("it did not end within %s", versionWithin))
	defer cancel()
	return Command{Path: path, Args: []string{"--version"}, Alone: true}.Run(ctx)
}

func versionOf(ctx context.Context, path string) (string, error) {
	out, err := VersionText(ctx, path)
	if err != nil {
		return "", err
	}
	version := versionPattern.FindString(out)
	if version == "" {
		return "", errors.New("it prints no version")
	}
	return version, nil
}

// newer compares dotted versions by their numbers.
func newer(a, b string) bool {
	return slices.Compare(numbers(a), numbers(b)) > 0
}

func numbers(version string) (list []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		list = append(list, n)
	}
	return list
}

// hint names the packages for this machine's distribution, or those of all if it is not known.
func hint(missing []load.Need) string {
	system := family()
	var lines []string
	for _, n := range missing {
		for _, p := range n.Packages {
			if line := p.String(); (system == "" || p.Family == system) && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines, ", or ")
}

// family is the distribution of this machine as load.Package names it, "" if unknown.
func family() string {
	f, err := os.Open("/etc/os-release")
	if err != nil {
		return ""
	}
	defer f.Close()
	var words []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, _ := strings.Cut(lines.Text(), "="); key == "ID" || key == "ID_LIKE" {
			words = append(words, strings.Fields(strings.Trim(value, `"'`))...)
		}
	}
	for _, f := range []struct{ family, word string }{
		{load.Debian, "debian"}, {load.Debian, "ubuntu"}, {load.RedHat, "fedora"}, {load.RedHat, "rhel"}, {load.SUSE, "suse"}, {load.SUSE, "sles"},
	} {
		if slices.Contains(words, f.word) {
			return f.family
		}
	}
	return ""
}
