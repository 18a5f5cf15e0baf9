package iojob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// forNames reports whether a job times what is done with names of files: filecreate, filestat, filedelete,
// dircreate, dirstat, dirdelete.
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

// madeByJob reports whether making the names is what the job times.
func madeByJob(j *fiojob.Job) bool { return j.IOEngine == "filecreate" || j.IOEngine == "dircreate" }

// layOutNames makes what has to be there before a job for names begins, but for files that have content, and reports whether
// that is all.
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
