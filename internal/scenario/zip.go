package scenario

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario/archive"
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
	files, err := archive.Open(f, documentName)
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
	files, err := archive.Open(f, documentName)
	if err != nil {
		return fmt.Errorf("unpack scenario %q: %w", s.Archive, err)
	}
	if err := archive.Unpack(files, dir); err != nil {
		return fmt.Errorf("unpack scenario %q: %w", s.Archive, err)
	}
	return nil
}
