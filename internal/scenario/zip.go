package scenario

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// Bounds of a scenario that is a zip file. Its files are read one by one, with the same bounds as files of a folder.
const (
	zipBytesMax   = 64 << 20
	zipEntriesMax = 10_000
	// Opening the first file builds an index of all parent folders of all entries.
	zipNameMax  = 512
	zipDepthMax = 32
	// unpackedBytesMax bounds the unpacked folder that playbooks use.
	unpackedBytesMax = 512 << 20
)

// openZip opens a scenario folder in a zip file: the archive itself, or the one folder in it.
func openZip(place string) (*folder, error) {
	refuse := func(hint string, err error) error {
		return &diag.Error{Code: "not-a-scenario", Message: fmt.Sprintf("open scenario %q", place), Hint: hint, Exit: diag.ExitData, Err: err}
	}
	f, err := os.Open(place)
	if err != nil {
		return nil, refuse("", cause(err))
	}
	files, err := readZip(f)
	if err != nil {
		f.Close()
		return nil, refuse("make it of the scenario's folder: zip -r scenario.zip scenario", err)
	}
	return &folder{shown: filepath.Join(place, documentName), document: documentName, fsys: files, archive: f, zip: place}, nil
}

// Unpack writes the folder of a scenario that is a zip file into dir, which must exist and be empty. This includes files that
// only programs of the scenario read.
func (s *Scenario) Unpack(dir string) error {
	f, err := os.Open(s.Archive)
	if err != nil {
		return fmt.Errorf("unpack scenario %q: %w", s.Archive, cause(err))
	}
	defer f.Close()
	files, err := readZip(f)
	if err != nil {
		return fmt.Errorf("unpack scenario %q: %w", s.Archive, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack scenario %q: %w", s.Archive, err)
	}
	defer root.Close()
	left := int64(unpackedBytesMax)
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case entry.IsDir():
			return root.Mkdir(name, 0o700)
		}
		return unpackFile(root, files, name, &left)
	})
	if err != nil {
		return fmt.Errorf("unpack scenario %q: %w", s.Archive, err)
	}
	return nil
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

// readZip checks the directory of an archive before using it.
func readZip(f *os.File) (fs.FS, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, cause(err)
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
			return nil, fmt.Errorf("the entry %q of the zip file has a name of more than %d bytes or %d folders", shorten(name), zipNameMax, zipDepthMax)
		case !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00"):
			return nil, fmt.Errorf("the entry %q of the zip file leads out of it", shorten(entry.Name))
		case !entry.Mode().IsRegular() && !entry.Mode().IsDir():
			return nil, fmt.Errorf("the entry %q of the zip file is a link or a special file", shorten(entry.Name))
		case names[name]: // other programs may show another entry than the one read here
			return nil, fmt.Errorf("the zip file has the entry %q twice", shorten(entry.Name))
		}
		names[name] = true
		if path.Base(name) == documentName && !strings.HasPrefix(name, "__MACOSX/") {
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
	return nil, errors.New("the zip file has no test.yml, neither at its top nor in the one folder there")
}
