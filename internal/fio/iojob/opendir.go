package iojob

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

// openDirMax bounds the files of one opendir, which are all open at the same time.
const openDirMax = 1 << 14

// filesBelow lists the regular files below a folder that have at least sizeMin bytes, in the order of their names. It does
// not follow links: they may lead out of the folder.
func filesBelow(base, dir string, sizeMin int64) ([]string, error) {
	root := dir
	if base != "" && !filepath.IsAbs(dir) {
		root = filepath.Join(base, dir)
	}
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		switch {
		case err != nil || info.Size() < sizeMin:
			return err
		case len(found) == openDirMax:
			return fmt.Errorf("more than %d files", openDirMax)
		}
		found = append(found, path)
		return nil
	})
	if err == nil && len(found) == 0 {
		err = errors.New("no regular file with anything in it is there")
	}
	if err != nil {
		return nil, fmt.Errorf("opendir=%s: %w", dir, err)
	}
	return found, nil
}

// startOfFiles makes a job with file_append begin at the current end of its files. Devices have no end to append to.
func (c *clone) startOfFiles() error {
	j := &c.job
	if j.Layout.UnlinkEachLoop && (j.Loops > 1 || j.TimeBased && j.Runtime > 0) {
		return errors.New("unlink_each_loop: files are not removed and recreated between loops; only jobs of one loop may set it, without effect")
	}
	if j.Layout.OpenDir != "" && j.Layout.Unlink {
		return errors.New("unlink=1 with opendir: it would remove files that no job made; remove them by hand")
	}
	if !j.Layout.Append || len(c.files) == 0 {
		return nil
	}
	end := int64(-1)
	for _, f := range c.files {
		if isDevice(f.path) {
			return nil
		}
		have, err := sizeOf(f.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if end >= 0 && have != end {
			return errors.New("file_append needs files of one length: the offset of a job is the same in all of its files")
		}
		end = have
	}
	if !j.Size.Set || j.Size.Percent > 0 {
		return errors.New("file_append needs size, in bytes: it says how much is appended")
	}
	j.Offset = fiojob.Size{Bytes: end, Set: true}
	return nil
}
