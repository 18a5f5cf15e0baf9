// Package runref finds the run for a word of the command line, and opens and reads its bundle for reporting.
//
//	"last", an id, a label, a path ──▶ Find ──▶ Open, OpenLive ──▶ Read: a document.Run, with doubts about its seal
package runref

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/result"
)

// Help explains RUN in the help of every command that takes one.
const Help = "RUN is a run id or its prefix, a label, \"last\", or the path of a bundle."

// Find returns the folder of the run that word names. A label of several runs names the newest of them.
func Find(p *console.Process, runs, word string) (string, error) {
	if IsPath(word) {
		return bundleAt(p, word)
	}
	all, err := result.List(runs)
	if strings.ContainsRune(word, filepath.Separator) {
		// A label may be the name of a branch, such as feature/x; a word that is not the label of a run is a path.
		if at := slices.IndexFunc(all, func(l result.Listed) bool { return l.Manifest.Label == word }); at >= 0 {
			return all[at].Dir, nil
		}
		return bundleAt(p, word)
	}
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", &diag.Error{
			Code: "no-runs", Message: "no runs in " + runs, Exit: diag.ExitUsage,
			Hint: "start one: bragg demo",
		}
	}
	if word == "last" {
		return all[0].Dir, nil
	}
	var begin, labelled []string
	var ids []string
	for _, l := range all {
		id := filepath.Base(l.Dir)
		ids = append(ids, id)
		switch {
		case id == word:
			return l.Dir, nil
		case word != "" && strings.HasPrefix(id, word):
			begin = append(begin, l.Dir)
		case word != "" && l.Manifest.Label == word:
			labelled = append(labelled, l.Dir)
		}
	}
	switch {
	case len(labelled) > 0:
		return labelled[0], nil
	case len(begin) == 1:
		return begin[0], nil
	case len(begin) > 1:
		return "", &diag.Error{
			Code: "ambiguous-run", Exit: diag.ExitUsage,
			Message: fmt.Sprintf("ambiguous run: %d ids start with %s", len(begin), strconv.Quote(word)),
			Hint:    "use a longer prefix: " + baseNames(begin, 4),
		}
	}
	hint := "bragg runs list shows all runs"
	if near := diag.Nearest(word, ids); near != "" {
		hint = "did you mean " + near + "?"
	}
	return "", &diag.Error{
		Code: "unknown-run", Message: "unknown run " + strconv.Quote(word) + " in " + runs, Hint: hint, Exit: diag.ExitUsage,
	}
}

// Repetitions replaces each label of sealed runs by all of them, the oldest first. Other words stay.
func Repetitions(p *console.Process, runs string, words []string) []string {
	all, err := result.List(runs)
	if err != nil {
		return words // reading the first word reports why
	}
	var out []string
	for _, word := range words {
		var labelled []string
		for _, l := range slices.Backward(all) {
			if !IsPath(word) && word != "" && l.Manifest.Label == word && l.Seal != nil {
				labelled = append(labelled, p.Path(l.Dir))
			}
		}
		if len(labelled) == 0 {
			labelled = []string{word}
		}
		out = append(out, labelled...)
	}
	return out
}

// IsPath reports whether a word can only be a path.
func IsPath(word string) bool {
	return word == "." || word == ".." || strings.HasPrefix(word, "/") || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../")
}

// bundleAt returns the folder that a path names, if a bundle is there.
func bundleAt(p *console.Process, word string) (string, error) {
	dir := filepath.Clean(p.Path(word))
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err != nil {
		return "", &diag.Error{
			Code: "no-bundle", Message: "no bundle at " + strconv.Quote(word), Exit: diag.ExitUsage,
			Hint: "a bundle is a folder with a manifest.json; bragg runs list shows runs and their labels",
		}
	}
	return dir, nil
}

// baseNames lists the last elements of paths, at most limit of them.
func baseNames(paths []string, limit int) string {
	var names []string
	for _, dir := range paths {
		if len(names) == limit {
			names = append(names, "…")
			break
		}
		names = append(names, filepath.Base(dir))
	}
	return strings.Join(names, ", ")
}

// Open finds and opens one run.
func Open(p *console.Process, runs, word string) (*result.Bundle, error) {
	dir, err := Find(p, runs, word)
	if err != nil {
		return nil, err
	}
	return openFound(runs, dir, word)
}

// openFound opens what Find found. Only a path that the user wrote may lead through a link.
func openFound(runs, dir, word string) (*result.Bundle, error) {
	if IsPath(word) || filepath.Dir(dir) != filepath.Clean(runs) {
		return OpenBundle(dir)
	}
	return explained(result.OpenIn(runs, filepath.Base(dir)))
}

// OpenLive finds and opens one run and reports whether it is running. A bundle that is not running is opened again after that
// check, so that one sealed in between is never taken for one whose writer died.
func OpenLive(p *console.Process, runs, word string) (b *result.Bundle, live bool, err error) {
	b, err = Open(p, runs, word)
	if err != nil || b.Sealed() != nil || b.Live() {
		return b, err == nil && b.Sealed() == nil, err
	}
	dir := b.Dir()
	if err := b.Close(); err != nil {
		return nil, false, err
	}
	b, err = openFound(runs, dir, word)
	return b, false, err
}

// OpenBundle opens the bundle in a folder.
func OpenBundle(dir string) (*result.Bundle, error) { return explained(result.Open(dir)) }

func explained(b *result.Bundle, err error) (*result.Bundle, error) {
	if err == nil {
		return b, nil
	}
	unreadable := &diag.Error{Code: "unreadable-bundle", Message: "read the run", Err: err, Exit: diag.ExitUnavailable}
	switch {
	case errors.Is(err, result.ErrNewer):
		unreadable.Hint = "a newer bragg wrote it: update this one"
	case errors.Is(err, result.ErrDamaged):
		unreadable.Hint = "the manifest is modified or truncated"
	}
	return nil, unreadable
}

// Complete offers run ids and labels to the shell.
func Complete(p *console.Process, runs *string) console.Completer {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		all, err := result.List(p.RunsDirectory(*runs))
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		words := []string{"last"}
		for _, l := range all {
			words = append(words, filepath.Base(l.Dir)+"\t"+l.Manifest.Scenario.Name)
			if l.Manifest.Label != "" {
				words = append(words, l.Manifest.Label+"\tlabel")
			}
		}
		return console.Fitting(words, args, begun), cobra.ShellCompDirectiveDefault // the path of a bundle, if no word matches
	}
}
