package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/durable"
)

// readJSON reads a small file. It refuses links and devices: others may be able to write to the folder.
func readJSON(path string, into any) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, recordBytesMax+1))
	if err != nil {
		return err
	}
	if len(text) > recordBytesMax {
		return fmt.Errorf("read %q: more than %d bytes", path, recordBytesMax)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %q: %w", path, err)
	}
	return nil
}

// writeOnce makes a file that has its whole content, synced, from the moment it has a name. If the file exists, the error
// is fs.ErrExist.
func writeOnce(dir, name string, text []byte) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		return writeExclusive(filepath.Join(dir, name), text)
	}
	if err != nil {
		return &os.PathError{Op: "create", Path: filepath.Join(dir, name), Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if err := writeSynced(f, text); err != nil {
		return err
	}
	err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, filepath.Join(dir, name),
		unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: name, New: filepath.Join(dir, name), Err: err}
	}
	return durable.Sync(dir)
}

// writeExclusive is writeOnce for file systems without unnamed files. A crash in between can leave an incomplete file,
// which has no owner and is ignored.
func writeExclusive(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := writeSynced(f, text); err != nil {
		_ = os.Remove(path)
		return err
	}
	return durable.Sync(filepath.Dir(path))
}

func writeSynced(f *os.File, text []byte) error {
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Sync()
}

// replaceJSON replaces a file as a whole: a reader sees the former content or the new one. It is not synced; a crash of the
// machine may lose it, but also ends the processes that it describes.
func replaceJSON(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return replaceFile(path, append(text, '\n'))
}

// syncFolder writes the files of a folder and their names to the disk.
func syncFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			if err := durable.Sync(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return errors.Join(durable.Sync(dir), durable.Sync(filepath.Dir(dir)))
}
