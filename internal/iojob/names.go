package iojob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/fiojob"
)

// forNames tells whether a job times what is done with names of files: filecreate, filestat, filedelete.
func forNames(j *fiojob.Job) bool {
	return j.IOEngine == "filecreate" || j.IOEngine == "filestat" || j.IOEngine == "filedelete"
}

// makeFolders makes what files are to be made in.
func (c *clone) makeFolders() error {
	for _, f := range c.files {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// planNames gives a clone its files. Those that are looked up or deleted are made first, and what was there before is never
// deleted; those that are made must not be there, or something else would be timed.
func (c *clone) planNames(folder string) error {
	j := &c.job
	for _, name := range c.names() {
		if folder != "" && !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
		_, err := os.Lstat(name)
		switch {
		case err == nil && j.IOEngine == "filedelete":
			return fmt.Errorf("file %q was there before, and only files that this job made are deleted", name)
		case err == nil && j.IOEngine == "filecreate":
			return fmt.Errorf("file %q is there already; filecreate times making it", name)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
		c.files = append(c.files, cloneFile{path: name, need: j.FileSize.Bytes, size: j.FileSize.Bytes})
	}
	*j = c.alone(func(string) (int64, bool) { return 0, false })
	return nil
}
