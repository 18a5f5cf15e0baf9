//go:build !linux

package tree

import (
	"errors"
	"os"
)

func (a Access) openFlags() (int, error) {
	if a.Direct || a.Sync {
		return 0, errors.New("openflags are supported on Linux only")
	}
	return 0, nil
}

func syncAll(string) error { return nil }

func class(error) string { return "error" }

func accessible(path string) error {
	_, err := os.Stat(path)
	return err
}
