package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/durable"
)

// temporarySuffix ends the name of an incomplete file in the control directory.
const temporarySuffix = ".new"

// Journals returns the ids of all runs that have a journal in a runs directory. A directory that does not exist has
// none.
func Journals(runs string) ([]string, error) {
	if err := checkControl(runs); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(controlDir(runs))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list journals: %w", err)
	}
	var ids []string
	for _, entry := range entries {
		if id, ok := strings.CutSuffix(entry.Name(), journalSuffix); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// RemoveTemporary removes temporary files of controllers that died while they created their journal or the directory's identity.
// Such controllers have not changed the target. It does nothing while another controller is creating one.
func RemoveTemporary(runs string) error {
	if err := checkControl(runs); err != nil {
		return err
	}
	dir := controlDir(runs)
	release, err := durable.LockDir(dir, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove temporary files: %w", err)
	}
	defer release()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("remove temporary files: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), temporarySuffix) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("remove temporary file: %w", err)
		}
	}
	return nil
}
