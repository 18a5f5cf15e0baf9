//go:build unix

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"syscall"
)

// ErrForeign means that a name in a Folder is not a file or folder of its own: a link, a pipe, a device, a file with a second name.
// Nothing was written.
var ErrForeign = errors.New("not written")

// ErrIrregular means that a name is not that of a regular file within its folder.
var ErrIrregular = errors.New("not a regular file")

// StatWithin describes a file. Links are followed within the folder.
func StatWithin(root *os.Root, name string) (fs.FileInfo, error) {
	info, err := root.Stat(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	if link, e := root.Lstat(name); e == nil && link.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("%w, but a link to a file outside of the folder", ErrIrregular)
	}
	return nil, err
}

// OpenRegular opens a regular file for reading. Links are followed within the folder.
func OpenRegular(root *os.Root, name string) (*os.File, error) {
	info, err := StatWithin(root, name) // before it is opened: to open a device may have effects
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrIrregular
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have taken its place, and blocks
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = ErrIrregular
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Folder writes below a folder of unknown origin, such as a copied or unpacked one. Names are slash-separated and relative. Whatever
// they are, nothing is written outside of the folder, and nothing through a link: a file that is replaced gets a new name, and one that is
// opened must be a regular file with this one name.
//
// The path of the folder itself may contain links, because the user named it.
type Folder struct {
	root *os.Root
}

// OpenFolder opens an existing folder.
func OpenFolder(dir string) (*Folder, error) {
	root, err := OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{root}, nil
}

// FolderOf is the folder that was opened as root, which the caller closes.
func FolderOf(root *os.Root) *Folder { return &Folder{root} }

// Root opens a folder in the folder. It is not a link, also if one takes its place meanwhile.
func (f *Folder) Root(name string) (*os.Root, error) {
	if err := f.plainFolders(name); err != nil {
		return nil, err
	}
	before, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	root, err := f.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := root.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = f.foreign(name, "was replaced while it was opened")
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// Path is the path of a name in the folder, as the folder was opened.
func (f *Folder) Path(name string) string {
	return filepath.Join(f.root.Name(), filepath.FromSlash(name))
}

// Close releases the folder. Open files stay open.
func (f *Folder) Close() error { return f.root.Close() }

// Open opens a file to change it in place, with flags as of os.OpenFile, without O_TRUNC.
func (f *Folder) Open(name string, flag int, mode fs.FileMode) (file *os.File, err error) {
	for range openTries {
		file, err = f.open(name, flag, mode)
		if !errors.Is(err, fs.ErrExist) || flag&os.O_EXCL != 0 {
			break
		}
	}
	return file, err
}

// openTries bounds how often Open looks again at a name that another process makes and removes meanwhile.
const openTries = 10

func (f *Folder) open(name string, flag int, mode fs.FileMode) (*os.File, error) {
	before, err := f.lookFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
		return f.root.OpenFile(name, flag|os.O_EXCL, mode) // which does not follow a link that was just made
	case err == nil && flag&os.O_EXCL != 0:
		return nil, &fs.PathError{Op: "create", Path: f.Path(name), Err: fs.ErrExist}
	case err != nil:
		return nil, err
	}
	// A pipe that was just made does not block.
	file, err := f.root.OpenFile(name, flag&^os.O_CREATE|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	after, err := file.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = f.foreign(name, "was replaced while it was opened")
	}
	if err == nil {
		err = f.refuse(name, after)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// lookFile returns what is known of an existing file, and refuses all that is not a plain file below plain folders.
func (f *Folder) lookFile(name string) (fs.FileInfo, error) {
	if err := f.plainFolders(path.Dir(name)); err != nil {
		return nil, err
	}
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	return info, f.refuse(name, info)
}

func (f *Folder) refuse(name string, info fs.FileInfo) error {
	switch stat, ok := info.Sys().(*syscall.Stat_t); {
	case info.Mode()&fs.ModeSymlink != 0:
		return f.foreign(name, "is a symbolic link")
	case info.IsDir():
		return f.foreign(name, "is a folder")
	case !info.Mode().IsRegular():
		return f.foreign(name, "is not a regular file")
	case ok && stat.Nlink > 1:
		return f.foreign(name, fmt.Sprintf("is a hard link; the file has %d names", stat.Nlink))
	}
	return nil
}

func (f *Folder) foreign(name, what string) error {
	return fmt.Errorf("%w: %q %s", ErrForeign, f.Path(name), what)
}

// CheckFolder refuses a path below a folder that is not a folder, or is below a link. A path that does not exist is fine.
func CheckFolder(dir, name string) error {
	f, err := OpenFolder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.plainFolders(name), f.Close())
}

// OpenFile opens a file to change it in place, as Folder.Open does. Only its last name must not be a link.
func OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := OpenFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Open(filepath.Base(path), flag, mode)
}

// CheckTree refuses a folder that contains anything but folders and regular files with one name, in which a library may then write.
func CheckTree(dir, name string) error {
	f, err := OpenFolder(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.plainTree(name), f.Close())
}

func (f *Folder) plainTree(name string) error {
	entries, err := f.Entries(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		below := path.Join(name, e.Name())
		if e.IsDir() {
			err = f.plainTree(below)
		} else {
			_, err = f.lookFile(below)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// plainFolders refuses a name that is not a folder, or is below a link. What does not exist is fine.
func (f *Folder) plainFolders(name string) error {
	if name == "." {
		return nil
	}
	if !filepath.IsLocal(name) {
		return f.foreign(name, "leads out of the folder")
	}
	if err := f.plainFolders(path.Dir(name)); err != nil {
		return err
	}
	switch info, err := f.root.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return f.foreign(name, "is a symbolic link")
	case !info.IsDir():
		return f.foreign(name, "is not a folder")
	}
	return nil
}

// MakeAll creates a folder and those above it, if they do not exist.
func (f *Folder) MakeAll(name string, mode fs.FileMode) error {
	if err := f.plainFolders(name); err != nil {
		return err
	}
	return f.root.MkdirAll(name, mode)
}

// CreateTemp creates a file with a name of its own: the prefix and a random number.
func (f *Folder) CreateTemp(prefix string) (name string, file *os.File, err error) {
	if err := f.plainFolders(path.Dir(prefix)); err != nil {
		return "", nil, err
	}
	for range temporaryTries {
		name = prefix + strconv.FormatUint(rand.Uint64(), 36)
		if file, err = f.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, fs.ErrExist) {
			return name, file, err
		}
	}
	return "", nil, err
}

// temporaryTries bounds how often CreateTemp draws another name.
const temporaryTries = 100

// Rename renames a file; a file, link or pipe with the new name is replaced.
func (f *Folder) Rename(from, to string) error {
	if err := f.plainFolders(path.Dir(to)); err != nil {
		return err
	}
	if info, err := f.root.Lstat(to); err == nil && info.IsDir() {
		return f.foreign(to, "is a folder")
	}
	return f.root.Rename(from, to)
}

// Remove removes a file, a link or an empty folder. A name that does not exist is fine.
func (f *Folder) Remove(name string) error {
	if err := f.plainFolders(path.Dir(name)); err != nil {
		return err
	}
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveAll removes a name and everything below it. Links are removed, not followed.
func (f *Folder) RemoveAll(name string) error {
	if err := f.plainFolders(path.Dir(name)); err != nil {
		return err
	}
	return f.root.RemoveAll(name)
}

// Entries lists a folder.
func (f *Folder) Entries(name string) ([]fs.DirEntry, error) {
	dir, err := f.openFolder(name)
	if err != nil {
		return nil, err
	}
	entries, err := dir.ReadDir(-1)
	return entries, errors.Join(err, dir.Close())
}

// Lock locks a folder, as LockDir does.
func (f *Folder) Lock(name string, how int) (release func(), err error) {
	dir, err := f.openFolder(name)
	if err != nil {
		return nil, err
	}
	return lockOpen(dir, how)
}

// Mode returns the mode of a folder.
func (f *Folder) Mode(name string) (fs.FileMode, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}

// Sync writes the names in a folder to the disk.
func (f *Folder) Sync(name string) error {
	dir, err := f.openFolder(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (f *Folder) openFolder(name string) (*os.File, error) {
	if err := f.plainFolders(name); err != nil {
		return nil, err
	}
	return f.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
}
