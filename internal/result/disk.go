package result

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/durable"
)

// ErrBusy means that another process is writing the bundle.
var ErrBusy = errors.New("another process is writing this bundle")

// temporaryPrefix is the prefix of files that are not complete yet. Names of attachments never begin with a dot.
const temporaryPrefix = ".bragg-"

// ReplaceFile writes a file atomically: it exists complete or not at all, even after a power loss. RemoveTemporary removes what a
// killed writer leaves beside it. Users who may enter its folder may read it. What has its name, a link too, is replaced.
func ReplaceFile(path string, write func(io.Writer) error) error {
	folder, err := durable.OpenFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	return replaceIn(folder, filepath.Base(path), write)
}

// replaceIn is ReplaceFile for a name in a folder, which no link leads out of.
func replaceIn(folder *durable.Folder, name string, write func(io.Writer) error) error {
	dir := path.Dir(name)
	release, err := folder.Lock(dir, unix.LOCK_SH)
	if err != nil {
		return err
	}
	defer release()
	temporary, f, err := folder.CreateTemp(path.Join(dir, temporaryPrefix))
	if err != nil {
		return err
	}
	defer func() { _ = folder.Remove(temporary) }() // already renamed after success
	w := bufio.NewWriter(f)
	err = write(w)
	if err == nil {
		err = errors.Join(w.Flush(), f.Chmod(modeIn(folder, dir)), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := folder.Rename(temporary, name); err != nil {
		return err
	}
	return folder.Sync(dir)
}

// Modes of bundles, which contain host names and the output of programs on VMs.
const (
	folderMode = 0o700
	fileMode   = 0o600
)

// modeIn is the mode of a new file in a folder: others may read it if they may enter the folder.
func modeIn(folder *durable.Folder, dir string) fs.FileMode {
	mode := fs.FileMode(fileMode)
	if of, err := folder.Mode(dir); err == nil {
		mode |= of.Perm() & 0o011 << 2
	}
	return mode
}

func writeFileAtomic(folder *durable.Folder, name string, text []byte) error {
	return replaceIn(folder, name, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// RemoveTemporary removes partly written files of killed writers from a bundle. It skips folders in which a process is writing a
// file.
func RemoveTemporary(dir string) error {
	folder, err := durable.OpenFolder(dir)
	if err != nil {
		return fmt.Errorf("remove half-written files: %w", err)
	}
	defer folder.Close()
	err = removeTemporary(folder, ".")
	if more := removeTemporaryBelow(folder, attachmentsDir); !errors.Is(more, fs.ErrNotExist) && !errors.Is(more, durable.ErrForeign) {
		err = errors.Join(err, more) // links among the attachments lead to files of others
	}
	if err != nil {
		return fmt.Errorf("remove half-written files: %w", err)
	}
	return nil
}

func removeTemporaryBelow(folder *durable.Folder, dir string) error {
	entries, err := folder.Entries(dir)
	if err != nil {
		return err
	}
	err = removeTemporary(folder, dir)
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeTemporaryBelow(folder, path.Join(dir, e.Name())))
		}
	}
	return err
}

func removeTemporary(folder *durable.Folder, dir string) error {
	release, err := folder.Lock(dir, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	entries, err := folder.Entries(dir)
	for _, entry := range entries {
		if entry.Type().IsRegular() && strings.HasPrefix(entry.Name(), temporaryPrefix) {
			err = errors.Join(err, folder.Remove(path.Join(dir, entry.Name())))
		}
	}
	return err
}

// lockTries and lockPause outlast a reader that briefly takes the lock to check for a writer.
const (
	lockTries = 10
	lockPause = 5 * time.Millisecond
)

// lockFile takes the writer's lock. It ends with unlockFile or the process.
func lockFile(f *os.File) error {
	for try := 1; ; try++ {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if try == lockTries {
			return ErrBusy
		}
		time.Sleep(lockPause)
	}
}

// unlockFile releases the lock. Closing the file is not enough: a child process between fork and exec holds a copy of the
// descriptor, and with it the lock.
func unlockFile(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// locked reports whether a writer holds the lock of f.
func locked(f *os.File) bool {
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	}
	return errors.Is(err, unix.EWOULDBLOCK)
}

// checkAttachmentName refuses names that lead out of the folder or hide in it.
func checkAttachmentName(name string) error {
	if name == "" || len(name) > 1000 || strings.ContainsAny(name, "\x00\\") || path.Clean(name) != name ||
		!filepath.IsLocal(name) {
		return fmt.Errorf("name %q: want a plain relative path", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || len(part) > 200 {
			return fmt.Errorf("name %q: want parts of at most 200 bytes that do not begin with a dot", name)
		}
	}
	return nil
}

// stillThere reports whether the bundle's files still exist under their names. Data written to a removed file is lost when the
// process ends, and the kernel reports no error.
func (w *Writer) stillThere() error {
	for _, f := range []*os.File{w.events, w.intervals.file, w.samples.file} {
		held, err := f.Stat()
		if err != nil {
			return err
		}
		named, err := os.Lstat(f.Name())
		if err != nil {
			return fmt.Errorf("the file was removed during the run: %w", err)
		}
		if !os.SameFile(held, named) {
			return fmt.Errorf("another file was put in the place of %q during the run", filepath.Base(f.Name()))
		}
	}
	return nil
}
