// Package archive reads the folder of a scenario in a zip file, which may be hostile.
package archive

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Bounds. Files are read one by one, with the same bounds as files of a folder.
const (
	zipBytesMax   = 64 << 20
	zipEntriesMax = 10_000
	// Opening the first file builds an index of all parent folders of all entries.
	zipNameMax  = 512
	zipDepthMax = 32
	// unpackedBytesMax bounds the unpacked folder that playbooks use.
	unpackedBytesMax = 512 << 20
)

// Unpack writes all files into dir, which must exist and be empty.
func Unpack(files fs.FS, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	left := int64(unpackedBytesMax)
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case entry.IsDir():
			return root.Mkdir(name, 0o700)
		}
		return unpackFile(root, files, name, &left)
	})
}

// unpackFile writes one file and subtracts its size from the bytes left. It does not rely on the sizes that the archive states.
func unpackFile(root *os.Root, files fs.FS, name string, left *int64) error {
	from, err := files.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(from, *left+1))
	if *left -= n; *left < 0 && err == nil {
		err = fmt.Errorf("its files have more than %d MiB", unpackedBytesMax>>20)
	}
	return errors.Join(err, to.Close())
}

// Open returns the folder that has the file, at the top of a zip file or in the one folder there. It checks the directory of the archive before
// it uses it. f stays open for as long as the folder is read.
func Open(f *os.File, file string) (fs.FS, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > zipBytesMax {
		return nil, fmt.Errorf("a zip file of at most %d MiB is wanted", zipBytesMax>>20)
	}
	archive, err := zip.NewReader(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("read zip file: %w", err)
	}
	if len(archive.File) > zipEntriesMax {
		return nil, fmt.Errorf("the zip file has %d entries and at most %d are allowed", len(archive.File), zipEntriesMax)
	}
	tops, names := map[string]bool{}, map[string]bool{}
	for _, entry := range archive.File {
		name := strings.TrimSuffix(entry.Name, "/")
		switch {
		case len(name) > zipNameMax || strings.Count(name, "/") > zipDepthMax:
			return nil, fmt.Errorf("the entry %.40q of the zip file has a name of more than %d bytes or %d folders", name, zipNameMax, zipDepthMax)
		case !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00"):
			return nil, fmt.Errorf("the entry %.40q of the zip file leads out of it", entry.Name)
		case !entry.Mode().IsRegular() && !entry.Mode().IsDir():
			return nil, fmt.Errorf("the entry %.40q of the zip file is a link or a special file", entry.Name)
		case names[name]: // other programs may show another entry than the one read here
			return nil, fmt.Errorf("the zip file has the entry %.40q twice", entry.Name)
		}
		names[name] = true
		if path.Base(name) == file && !strings.HasPrefix(name, "__MACOSX/") {
			tops[path.Dir(name)] = true
		}
	}
	if tops["."] {
		return archive, nil
	}
	for top := range tops {
		if len(tops) == 1 && !strings.Contains(top, "/") {
			return fs.Sub(archive, top)
		}
	}
	return nil, fmt.Errorf("the zip file has no %s, neither at its top nor in the one folder there", file)
}
