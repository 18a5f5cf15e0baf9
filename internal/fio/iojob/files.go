package iojob

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/unit"
)

// expand makes the clones of all jobs and plans their files; relative names start from folder. It opens nothing.
func expand(jobs []fiojob.Job, o *Options, logs *ioLogs) ([]*clone, error) {
	var out []*clone
	var list diag.List
	phase := 0
	made := madeFiles{}
	for i, j := range jobs {
		if j.Stonewall && i > 0 {
			phase++
		}
		for k := range max(1, j.NumJobs) {
			c := &clone{job: j, ordinal: i, number: len(out), index: k, phase: phase, course: course{done: make(chan struct{}), stop: func() {}}}
			c.tally.Period = int64(o.Sample)
			c.made = made
			err := c.plan(o, logs)
			var faults *diag.ListError
			if errors.As(err, &faults) {
				list = append(list, faults.List...)
				break
			}
			if refused := (*diag.Error)(nil); errors.As(err, &refused) {
				return nil, err
			}
			if err != nil {
				list.Add(diag.Diagnostic{Code: "job-files", Pos: j.Pos, Message: fmt.Sprintf("job %q: %v", j.Name, err)})
				break
			}
			made.add(c)
			out = append(out, c)
		}
	}
	return out, list.Err()
}

// madeFiles are the files that jobs of this run create or extend, with their sizes, as far as they are planned. A later job
// treats them like existing files.
type madeFiles map[string]int64

func (m madeFiles) add(c *clone) {
	if verifiesOnly(&c.job) || forNames(&c.job) || c.job.IOEngine == "null" {
		return
	}
	for _, f := range c.files {
		m[f.path] = max(m[f.path], f.size)
	}
}

// sizeOf returns the size that a file will have when the jobs begin.
func (m madeFiles) sizeOf(path string) (int64, error) {
	have, err := sizeOf(path)
	if size, ok := m[path]; ok && (size > have || errors.Is(err, fs.ErrNotExist)) {
		return size, nil
	}
	return have, err
}

// plan gives a clone its own files and offset.
func (c *clone) plan(o *Options, logs *ioLogs) error {
	j, folder := &c.job, o.Folder
	c.logged = logs.taken(j.WriteIOLog, folder)
	if len(j.Replay.Logs) > 0 {
		j.NumJobs, j.Stonewall, j.Directory = 1, false, ""
		if c.later = logs.makes(c.replayed(o)); c.later {
			return nil
		}
		return c.planReplay(o, logs)
	}
	if j.IOEngine == "null" && len(j.Filenames) == 0 {
		return c.planNull()
	}
	if j.IOEngine == "cpuio" {
		*j = c.alone(func(string) (int64, bool) { return 0, false })
		return nil
	}
	if forNames(j) {
		return c.planNames(folder)
	}
	names, err := c.names(folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		if folder != "" && !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
		c.files = append(c.files, cloneFile{path: name})
	}
	existing := func(name string) (int64, bool) {
		n, err := c.made.sizeOf(name)
		return n, err == nil
	}
	if err := c.startOfFiles(); err != nil {
		return err
	}
	for i := range c.files {
		f := &c.files[i]
		have, err := c.made.sizeOf(f.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil && verifiesOnly(j) {
			return fmt.Errorf("file %q: verify_only needs what an earlier run wrote: %w", f.path, err)
		}
		if f.need, err = c.needs(have, err == nil); err != nil {
			return fmt.Errorf("file %q: %w", f.path, err)
		}
		f.size = max(have, f.need)
		if j.FileSizeMin > 0 {
			*f = c.drawn(i, f.path)
		}
		if j.IOEngine == "falloc" && j.Writes() {
			f.need = 0 // the job itself allocates the space
		}
	}
	*j = c.alone(existing)
	return nil
}

// planNull names the files that a job without files would make: the null engine does not touch them.
func (c *clone) planNull() error {
	j := &c.job
	names := j.CloneFiles(c.index)
	size := j.Offset.Bytes + int64(c.index)*j.OffsetIncrement.Bytes + j.Size.Bytes/int64(len(names))
	if j.FileSize.Set {
		size = j.FileSize.Bytes
	}
	if size <= 0 {
		return errors.New("no size is given")
	}
	for _, name := range names {
		c.files = append(c.files, cloneFile{path: name, size: size})
		if j.FileSizeMin > 0 {
			c.files[len(c.files)-1] = c.drawn(len(c.files)-1, name)
		}
	}
	*j = c.alone(func(string) (int64, bool) { return size, true })
	return nil
}

// drawn gives file i of the clone a length from the range of filesize, in whole blocks. The length depends only on the seed
// and the file's index in its job, so that another job with the same range finds what the first one wrote.
func (c *clone) drawn(i int, path string) cloneFile {
	j := &c.job
	smallest, largest := int64(math.MaxInt64), int64(0)
	for _, d := range []fiojob.Direction{fiojob.Read, fiojob.Write} {
		for _, split := range j.BlockSizes(d) {
			smallest, largest = min(smallest, split.Bytes), max(largest, split.Bytes)
		}
	}
	key := load.Key(load.KeyOf(load.Key(j.RandSeed, uint64(c.index)), "filesize"), uint64(i))
	n := j.FileSizeMin + int64(load.DrawBelow(key, 0, uint64(j.FileSize.Bytes-j.FileSizeMin)+1))
	n = max(n-n%max(1, smallest), largest)
	return cloneFile{path: path, need: n, size: n, drawn: true}
}

// alone returns the job of this clone only.
func (c *clone) alone(existing func(string) (int64, bool)) fiojob.Job {
	j := c.job
	j.Filenames, j.Directory = nil, ""
	for _, f := range c.files {
		j.Filenames = append(j.Filenames, f.path)
	}
	if j.Size.Percent > 0 || j.Offset.Percent > 0 || j.IOSize.Percent > 0 || j.OffsetIncrement.Percent > 0 || j.FileSize.Percent > 0 {
		j.Verify.Uncertain = j.Verify.Uncertain || j.IOSize.Percent > 0
		j = region.ResolveJob(j, existing)
	}
	j.Offset.Bytes += int64(c.index) * j.OffsetIncrement.Bytes
	j.Offset.Set = j.Offset.Set || j.Offset.Bytes > 0
	j.OffsetIncrement = fiojob.Size{}
	j.NumJobs, j.Stonewall = 1, false
	c.settle(&j)
	return j
}

// needs returns the minimum length of a file for this clone, 0 to use it as it is.
func (c *clone) needs(have int64, exists bool) (int64, error) {
	j := &c.job
	percent := j.Size.Percent > 0 || j.Offset.Percent > 0 || j.FileSize.Percent > 0 || j.OffsetIncrement.Percent > 0
	switch {
	case have == blockdev.EndlessBytes && (percent || !j.Size.Set):
		return 0, errors.New("it has no end: size must say how much of it is used")
	case percent && !exists:
		return 0, errors.New("a percentage needs a file that exists")
	case j.FileSize.Bytes > 0:
		return j.FileSize.Bytes, nil
	case percent || !j.Size.Set && exists && have > 0:
		return 0, nil
	case j.Size.Set:
		return j.Offset.Bytes + int64(c.index)*j.OffsetIncrement.Bytes + j.Size.Bytes/int64(len(c.files)), nil
	case j.Control.FillDevice && len(c.files) == 1:
		return space(c.files[0].path)
	case j.IOSize.Set:
		return j.Offset.Bytes + j.IOSize.Bytes/int64(len(c.files)), nil
	}
	return 0, errors.New("no size is given, and the file has none")
}

// names returns the files of a clone: those that the job names and those of its opendir, the device that its section names,
// or generated ones.
func (c *clone) names(folder string) ([]string, error) {
	j := &c.job
	if j.Layout.OpenDir != "" {
		sizeMin := int64(1) // without a given size, an empty file has no room for I/O
		if j.Size.Set || j.FileSize.Set || j.IOSize.Set {
			sizeMin = 0
		}
		found, err := filesBelow(folder, j.Layout.OpenDir, sizeMin)
		return append(j.Files(), found...), err
	}
	if len(j.Filenames) > 0 {
		return j.Files(), nil
	}
	if info, err := os.Stat(j.Section); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return []string{j.Section}, nil
	}
	return j.CloneFiles(c.index), nil
}

// endless reports whether a file has no end: /dev/null, /dev/zero.
func endless(path string) bool {
	info, err := os.Stat(path)
	return err == nil && blockdev.Endless(info)
}

// sizeOf returns the size of a regular file or block device, or blockdev.EndlessBytes.
func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return info.Size(), nil
	case blockdev.Endless(info):
		return blockdev.EndlessBytes, nil
	case mode&os.ModeDevice != 0 && mode&os.ModeCharDevice == 0:
		f, err := os.Open(path)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		return f.Seek(0, io.SeekEnd)
	}
	return 0, fmt.Errorf("%q is neither a file nor a block device", path)
}

func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeDevice != 0
}

// amongDevices reports whether a path leads into the folder of devices, except to the file system for shared memory below
// it.
func amongDevices(path string) bool {
	path, err := filepath.Abs(path)
	if folder, followed := filepath.EvalSymlinks(filepath.Dir(path)); followed == nil {
		path = filepath.Join(folder, filepath.Base(path))
	}
	return err == nil && strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/dev/shm/")
}

// noDevice explains why no file is made for a missing device: the file would be in memory and very fast.
func noDevice(path string) error {
	return &diag.Error{
		Code: "no-device", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("no such device: %q", path),
		Hint:    "a file of that name would be made in memory; lsblk lists the devices",
	}
}

// refusal explains why a block device is not written to.
func refusal(path string) error {
	return &diag.Error{
		Code: "device-write", Exit: diag.ExitRefused,
		Message: fmt.Sprintf("write to block device %q: its data would be lost", path),
		Hint:    "if that is meant, name it: --allow-device " + path,
	}
}

func tooSmall(path string, have, need int64) error {
	return &diag.Error{
		Code: "device-too-small", Exit: diag.ExitUnavailable,
		Message: fmt.Sprintf("device %q has %s, the jobs need %s of it", path, unit.FormatBytes(have), unit.FormatBytes(need)),
	}
}
