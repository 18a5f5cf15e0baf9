// Package durable writes small files atomically, even in a power loss, and locks folders.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Unfinished is the prefix of files that WriteFile leaves behind if its process is killed.
const Unfinished = ".new-"

// WriteFile writes a temporary file and renames it: a reader never finds a partial file, and a link in its place is replaced, not
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

// OpenRoot opens a folder as os.OpenRoot does, which waits for the writer of a pipe in the place of the folder.
func OpenRoot(dir string) (*os.Root, error) {
	if dir == "" {
		return os.OpenRoot(dir)
	}
	root, err := os.OpenRoot(dir + string(filepath.Separator) + ".") // which only a folder has
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		failed.Path = dir
	}
	return root, err
}

// ReadFile reads a file of at most bytesMax bytes. It refuses what is not a regular file, such as a pipe, which would block; a link to
// one is followed.
func ReadFile(path string, bytesMax int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %q: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, bytesMax+1))
	if err == nil && int64(len(text)) > bytesMax {
		err = fmt.Errorf("read %q: larger than %d bytes", path, bytesMax)
	}
	return text, err
}
