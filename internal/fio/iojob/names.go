package iojob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// forNames reports whether a job measures operations on names of files: filecreate, filestat, filedelete, dircreate,
// dirstat, dirdelete.
func forNames(j *fiojob.Job) bool {
	switch j.IOEngine {
	case "filecreate", "filestat", "filedelete":
		return true
	}
	return forFolders(j)
}

// forFolders reports whether these names are of folders.
func forFolders(j *fiojob.Job) bool {
	return j.IOEngine == "dircreate" || j.IOEngine == "dirstat" || j.IOEngine == "dirdelete"
}

// madeByJob reports whether the job measures the creation of names.
func madeByJob(j *fiojob.Job) bool { return j.IOEngine == "filecreate" || j.IOEngine == "dircreate" }

// layOutNames makes the files and folders that must exist before a job for names begins, except files with content, and
// reports whether that is all.
func (c *clone) layOutNames() (all bool, err error) {
	switch {
	case madeByJob(&c.job):
		return true, c.makeFolders()
	case !forFolders(&c.job):
		return false, nil
	}
	if err := c.makeFolders(); err != nil {
		return true, err
	}
	for _, f := range c.files {
		err := os.Mkdir(f.path, 0o755)
		if errors.Is(err, fs.ErrExist) && c.job.IOEngine == "dirstat" {
			err = nil
		}
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// makeFolders makes the folders of files that the job creates.
func (c *clone) makeFolders() error {
	for _, f := range c.files {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// planNames gives a clone its files. Files that are looked up or deleted are made first, and existing files are never
// deleted; files that the job creates must not exist, or the job would measure something else.
func (c *clone) planNames(folder string) error {
	j := &c.job
	names, err := c.names(folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		if folder != "" && !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
		_, err := os.Lstat(name)
		switch {
		case err == nil && (j.IOEngine == "filedelete" || j.IOEngine == "dirdelete"):
			return fmt.Errorf("%q was there before, and only what this job made is deleted", name)
		case err == nil && madeByJob(j):
			return fmt.Errorf("%q is there already; %s times making it", name, j.IOEngine)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
		c.files = append(c.files, cloneFile{path: name, need: j.FileSize.Bytes, size: j.FileSize.Bytes})
		if i := len(c.files) - 1; j.FileSizeMin > 0 {
			c.files[i] = c.drawn(i, name)
		}
	}
	*j = c.alone(func(string) (int64, bool) { return 0, false })
	return nil
}
