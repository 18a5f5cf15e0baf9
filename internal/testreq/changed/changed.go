// Command changed prints the packages whose tests may have another result since a commit: those that changed, those that depend on them, also
// by their tests alone, and those that read changed files. It reports the reasons on standard error.
//
//	go run ./internal/testreq/changed [-base COMMIT] [-programs]
//
// What it knows of a package, in this order: its Go files, embedded files, testdata, and paths that its files name as strings. It does not
// know files that a test finds in another way. A test that builds a program of cmd depends on nearly everything; such packages are only
// reported, and -programs adds them.
//
//	changed.go     what git says has changed
//	select.go      packages by changed files
//	references.go  paths that Go files name
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	base := flag.String("base", "", "commit since which files have changed; without it, the point where this branch left main")
	programs := flag.Bool("programs", false, "also the packages whose tests build programs that contain the change")
	flag.Parse()
	chosen, err := choose(".", *base)
	if err != nil {
		fmt.Fprintln(os.Stderr, "changed:", err)
		os.Exit(70)
	}
	report(chosen, *programs)
	for _, path := range chosen.packages(*programs) {
		fmt.Println(path)
	}
}

// choose selects the packages of a checkout.
func choose(dir, base string) (*selection, error) {
	root, err := git(dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	if base == "" {
		if base, err = git(root, "merge-base", "main", "HEAD"); err != nil {
			return nil, fmt.Errorf("find where this branch left main (BASE=COMMIT names another start): %w", err)
		}
	}
	files, err := changedFiles(root, base)
	if err != nil {
		return nil, err
	}
	packages, err := list(root)
	if err != nil {
		return nil, err
	}
	if len(packages) == 0 {
		return nil, errors.New("there are no packages")
	}
	found, err := references(root, packages[0].Module.Path)
	if err != nil {
		return nil, err
	}
	return selectBy(root, packages, found, files), nil
}

// changedFiles are files that differ from a commit, or are new: committed or not. Both names of a renamed file are among them.
func changedFiles(root, base string) ([]string, error) {
	differing, err := git(root, "diff", "--name-only", "--no-renames", "-z", base, "--")
	if err != nil {
		return nil, err
	}
	untracked, err := git(root, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	files := strings.FieldsFunc(differing+"\x00"+untracked, func(r rune) bool { return r == 0 })
	slices.Sort(files)
	return slices.Compact(files), nil
}

func git(dir string, args ...string) (string, error) {
	command := exec.Command("git", args...)
	command.Dir = dir
	text, err := command.Output()
	if err != nil {
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			err = errors.New(strings.TrimSpace(string(ended.Stderr)))
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimRight(string(text), "\n"), nil
}

// report says on standard error why packages are selected, and what is not known.
func report(s *selection, programs bool) {
	selected := s.packages(programs)
	fmt.Fprintf(os.Stderr, "%d of %d packages, for %d changed files\n", len(selected), len(s.all), len(s.files))
	for _, path := range slices.Sorted(maps.Keys(s.direct)) {
		fmt.Fprintf(os.Stderr, "  %s: %s\n", path, s.direct[path])
	}
	if n := len(s.dependent); n > 0 {
		fmt.Fprintf(os.Stderr, "  and %d packages that depend on them\n", n)
	}
	if len(s.unknown) > 0 {
		fmt.Fprintf(os.Stderr, "no package is known to use: %s\n", strings.Join(s.unknown, " "))
	}
	if n := len(s.viaPrograms); n > 0 && !programs {
		fmt.Fprintf(os.Stderr, "not selected: %d packages whose tests build a program with the change (PROGRAMS=1 adds them): %s\n", n,
			strings.Join(slices.Sorted(maps.Keys(s.viaPrograms)), " "))
	}
}
