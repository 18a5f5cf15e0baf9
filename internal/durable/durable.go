// Package durable writes small files that others see whole or not at all, also after a loss of power, and locks folders.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Unfinished begins the names of files that WriteFile leaves behind when its process is killed.
const Unfinished = ".new-"

// WriteFile writes a file beside its place first: a reader never finds half of one, and a link in its place is replaced and not
// followed.
func WriteFile(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), Unfinished+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// Sync writes a file, or the names in a folder, to the disk.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
