package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/durable"
)

// Listed is one entry of a runs directory.
type Listed struct {
	Dir      string
	Manifest Manifest
	State    State
	Live     bool  // a process is writing it now
	Seal     *Seal // nil unless sealed
	Err      error // why the bundle cannot be read; then only Dir is set
}

// List returns the bundles in a runs directory, newest first. Folders without a manifest are skipped; a bundle that cannot be
// read is listed with its error. A runs directory that does not exist is empty.
func List(runs string) ([]Listed, error) {
	entries, err := os.ReadDir(runs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var found []Listed
	for _, e := range entries {
		dir := filepath.Join(runs, e.Name())
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") { // .control is not a run
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, manifestFile)); err != nil {
			continue
		}
		found = append(found, listed(dir))
	}
	slices.SortFunc(found, func(a, b Listed) int {
		if c := b.Manifest.Created.Compare(a.Manifest.Created); c != 0 {
			return c
		}
		return strings.Compare(b.Dir, a.Dir)
	})
	return found, nil
}

func listed(dir string) Listed {
	b, err := Open(dir)
	if err != nil {
		return Listed{Dir: dir, Err: err}
	}
	defer b.Close()
	return Listed{Dir: dir, Manifest: b.Manifest(), State: b.State(), Live: b.Live(), Seal: b.Sealed()}
}

// Remove deletes the folder of one run. It refuses a name that is not a run of the directory and a run that is being
// written.
func Remove(runs, id string) error {
	if id == "" || id == "." || id == ".." || strings.ContainsAny(id, `/\`) {
		return fmt.Errorf("remove run %q: not a run id", id)
	}
	dir := filepath.Join(runs, id)
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("remove run %q: %w", id, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("remove run %q: not a folder", id)
	}
	b, err := Open(dir)
	if err == nil {
		live := b.Live()
		if err := b.Close(); err != nil {
			return fmt.Errorf("remove run %q: %w", id, err)
		}
		if live {
			return fmt.Errorf("remove run %q: %w", id, ErrBusy)
		}
	} else if _, statErr := os.Lstat(filepath.Join(dir, manifestFile)); statErr != nil {
		return fmt.Errorf("remove run %q: no bundle there", id)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove run %q: %w", id, err)
	}
	return nil
}

// RemoveIncomplete deletes the folder of a run that died before it had a manifest. It refuses one with anything that such a run does not
// create: the name of the folder is from a journal, which others may have written.
func RemoveIncomplete(runs, id string) error {
	folder, err := durable.OpenFolder(runs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove run %q: %w", id, err)
	}
	defer folder.Close()
	entries, err := folder.Entries(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !slices.Contains(incompleteNames, e.Name()) && !strings.HasPrefix(e.Name(), temporaryPrefix) {
			err = errors.Join(err, fmt.Errorf("%w: %q has no manifest, and is not of a run: it contains %q", durable.ErrForeign, folder.Path(id), e.Name()))
			break
		}
	}
	if err == nil {
		err = folder.RemoveAll(id)
	}
	if err != nil {
		return fmt.Errorf("remove run %q: %w", id, err)
	}
	return nil
}

// incompleteNames are what a run has made before its manifest: see Create. The folders are the provider's and the metric store's.
var incompleteNames = []string{eventsFile, intervalsFile, samplesFile, rollupsFile, reserveFile, "vms", "metrics"}
