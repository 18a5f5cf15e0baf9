//go:build unix

package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
)

// workMark is a file in folders that a build made, and may remove after a build that was killed.
const workMark = "bragg-image-build"

// makeWork makes the folder of a build, which release removes. It takes the place of one that a killed build left, and of no other.
func makeWork(path string) (release func(), err error) {
	refuse := func(message, hint string) (func(), error) {
		return nil, &diag.Error{Code: "work-folder", Exit: diag.ExitRefused, Message: fmt.Sprintf("build an image: %s %s", path, message), Hint: hint}
	}
	if _, err := os.Lstat(path); err == nil {
		if _, err := os.Lstat(filepath.Join(path, workMark)); err != nil {
			return refuse("exists, and no build made it", "move it away, or build the image in another folder")
		}
		unlock, err := durable.LockDir(path, unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return refuse("is in use by another build", "wait for its end, or give the image another name")
		} else if err != nil {
			return nil, fmt.Errorf("make image: %w", err)
		}
		err = os.RemoveAll(path)
		unlock()
		if err != nil {
			return nil, fmt.Errorf("make image: %w", err)
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil { // users of packages enter it
		return nil, fmt.Errorf("make image: %w", err)
	}
	unlock, err := durable.LockDir(path, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = os.WriteFile(filepath.Join(path, workMark), nil, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make image: %w", err), os.RemoveAll(path))
	}
	return func() {
		_ = os.RemoveAll(path)
		unlock()
	}, nil
}
