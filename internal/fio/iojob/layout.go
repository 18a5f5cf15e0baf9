package iojob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/load/ioengine/content"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/unit"
)

// plannedFile is one file with the requirements of all its clones.
type plannedFile struct {
	path    string
	need    int64
	reads   bool
	writes  bool
	held    *os.File // a block device to write to, once it is checked
	made    bool     // by this run
	grows   bool     // it grows as it is written: fallocate=none
	holes   bool     // no space is allocated before it is written: fallocate=none
	mayMake bool     // it may be created: not allow_file_create=0 of all its jobs
	laidOut bool     // it is extended before the start: not create_on_open
	watched bool     // its device is in the report: not disk_util=0
	flush   bool     // its fill is flushed: not create_fsync=0
}

// holdings are the block devices that a run writes to, each held once for all its phases and names, and the files that it
// laid out.
type holdings struct {
	devices []*os.File
	files   map[string]*plannedFile // all that were laid out, by path
}

// watched are the files whose devices are in the report.
func (h *holdings) watched() (paths []string) {
	for _, p := range h.files {
		if p.watched {
			paths = append(paths, p.path)
		}
	}
	return paths
}

// layOut makes files long enough and fills those that are read, because reading a hole does not reach the device. It never
// makes a file shorter. If a clone's files are known only when it begins, they are laid out then. Devices stay held until
// release, even after an error.
func (h *holdings) layOut(ctx context.Context, clones []*clone, o Options) error {
	files, order, err := filesOf(clones, &o)
	if err != nil {
		return err
	}
	// Refusals come before the first file is made.
	var guard blockdev.Guard // only regular files, so that nothing is held
	for _, path := range order {
		if err := files[path].check(o, &guard, h); err != nil {
			return err
		}
	}
	for _, path := range order {
		if err := files[path].make(ctx, o); err != nil {
			return fmt.Errorf("lay out file %q: %w", path, err)
		}
	}
	for _, c := range clones {
		for i := range c.files {
			if p := files[c.files[i].path]; p != nil {
				c.files[i].held = p.held
				if !c.files[i].drawn {
					c.files[i].size = max(c.files[i].size, p.need)
				}
			}
		}
	}
	if h.files == nil {
		h.files = map[string]*plannedFile{}
	}
	maps.Copy(h.files, files)
	return nil
}

// filesOf returns the requirements of clones for each file, and the order in which they name them.
func filesOf(clones []*clone, o *Options) (files map[string]*plannedFile, order []string, err error) {
	files = map[string]*plannedFile{}
	for _, c := range clones {
		if c.job.IOEngine == "null" || o.Backend == "null" && !forNames(&c.job) {
			continue
		}
		if all, err := c.layOutNames(); err != nil {
			return nil, nil, err
		} else if all {
			continue
		}
		for _, f := range c.files {
			p := files[f.path]
			first := p == nil
			if first {
				p = &plannedFile{path: f.path}
				files[f.path] = p
				order = append(order, f.path)
			}
			p.need = max(p.need, f.need)
			reads, writes := c.touches(&f)
			p.writes = p.writes || writes
			p.holes = p.holes || leavesHoles(&c.job) || c.job.IOEngine == "falloc" || c.job.Control.FillDevice
			p.grows = (p.grows || first) && program.Grows(&c.job)
			p.mayMake = p.mayMake || !c.job.Layout.NoCreate
			p.laidOut = p.laidOut || !c.job.Layout.CreateOnOpen
			p.watched = p.watched || !c.job.NoDiskUse
			p.flush = p.flush || !c.job.Layout.NoSync
			p.reads = p.reads || reads && !forNames(&c.job) || c.job.Layout.Overwrite
		}
	}
	return files, order, nil
}

// check refuses files that must not or cannot be written.
func (p *plannedFile) check(o Options, guard *blockdev.Guard, h *holdings) error {
	have, err := sizeOf(p.path)
	if errors.Is(err, fs.ErrNotExist) && amongDevices(p.path) {
		return noDevice(p.path)
	}
	if errors.Is(err, fs.ErrNotExist) && !p.mayMake {
		return &diag.Error{Code: "no-file", Exit: diag.ExitData, Message: fmt.Sprintf("file %q does not exist, and allow_file_create=0 forbids creating it", p.path)}
	}
	if !isDevice(p.path) {
		if err != nil || !p.writes && have >= p.need {
			return nil // missing files are created, and files that are only read do not change
		}
		_, err = guard.Admit(p.path, blockdev.Consent{})
		return err
	}
	switch {
	case err != nil:
		return err
	case have < p.need:
		return tooSmall(p.path, have, p.need)
	case !p.writes || endless(p.path):
		return nil
	case o.OpenDevice == nil:
		return refusal(p.path)
	}
	p.held, err = h.hold(p.path, o.OpenDevice)
	return err
}

// hold returns the device that a path leads to, and opens it if it is not held yet: the kernel opens it exclusively only
// once.
func (h *holdings) hold(path string, open func(path string) (*os.File, error)) (*os.File, error) {
	for _, f := range h.devices {
		if sameDevice(path, f) {
			return f, nil
		}
	}
	f, err := open(path)
	if err == nil {
		h.devices = append(h.devices, f)
	}
	return f, err
}

// sameDevice reports whether a path leads to an open device.
func sameDevice(path string, f *os.File) bool {
	a, errPath := os.Stat(path)
	b, errFile := f.Stat()
	return errPath == nil && errFile == nil && os.SameFile(a, b)
}

// release closes the held devices.
func (h *holdings) release() {
	for _, f := range h.devices {
		_ = f.Close() // all writes have completed
	}
	h.devices = nil
}

// make extends a regular file to its length.
func (p *plannedFile) make(ctx context.Context, o Options) error {
	if endless(p.path) {
		return nil
	}
	have, err := sizeOf(p.path)
	p.made = errors.Is(err, fs.ErrNotExist)
	if err != nil && !p.made {
		return err
	}
	if isDevice(p.path) || !p.made && (have >= p.need || !p.laidOut) {
		return p.warnOfHoles(have, o)
	}
	if p.made {
		if err := os.MkdirAll(filepath.Dir(p.path), 0o755); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(p.path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if !p.laidOut || !p.reads && p.grows {
		return f.Close()
	}
	if !p.reads && p.holes {
		return errors.Join(f.Truncate(max(have, p.need)), f.Close())
	}
	if !p.reads {
		return errors.Join(reserve(f, have, p.need), f.Close())
	}
	o.say("laying out %s (%s)", p.path, unit.FormatBytes(p.need))
	if err = errors.Join(p.fill(ctx, f, have), f.Close()); err != nil {
		if p.made {
			err = errors.Join(err, os.Remove(p.path)) // later, half a file would look like a complete one
		}
		return err
	}
	return nil
}

// leavesHoles reports whether a job wants its files without allocated space until they are written.
func leavesHoles(j *fiojob.Job) bool {
	return j.Layout.Fallocate == "none" || j.Layout.Fallocate == "truncate"
}

// warnOfHoles warns if parts of a file that is read were never written: reads of them do not reach a device.
func (p *plannedFile) warnOfHoles(have int64, o Options) error {
	if !p.reads {
		return nil
	}
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	length := have
	if p.need > 0 {
		length = p.need
	}
	holes, err := blockdev.ReadWarning(f, []extent.Extent{{Length: length}})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err == nil && holes > 0 {
		o.say("warning: %s of %s were never written; reads of them are answered by the file system, and the numbers are not those of a device",
			unit.FormatBytes(holes), p.path)
	}
	return err
}

// preReadFiles reads the files of a clone into the page cache, if its job requests it.
func (c *clone) preReadFiles() error {
	if !c.job.Control.PreRead {
		return nil
	}
	for _, f := range c.files {
		if err := readAll(f.path); err != nil {
			return fmt.Errorf("pre_read: %w", err)
		}
	}
	return nil
}

const fillBlock = 1 << 20

// fill writes incompressible data from an offset to the end and, unless the job disables it, waits until it is on the
// medium.
func (p *plannedFile) fill(ctx context.Context, f *os.File, from int64) error {
	block, to := make([]byte, fillBlock), p.need
	for at := from; at < to; {
		if err := ctx.Err(); err != nil {
			return err
		}
		content.Fill(block, uint64(at))
		n, err := f.WriteAt(block[:min(fillBlock, to-at)], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	if !p.flush {
		return nil
	}
	return f.Sync()
}

// removeUnlinked removes the regular files of jobs that request it, as fio does after a job.
func removeUnlinked(clones []*clone, files map[string]*plannedFile) []error {
	var errs []error
	var removed []string
	for _, c := range clones {
		if !c.job.Layout.Unlink {
			continue
		}
		for _, f := range c.files {
			if files[f.path] == nil && !forNames(&c.job) || isDevice(f.path) || slices.Contains(removed, f.path) {
				continue
			}
			removed = append(removed, f.path)
			if err := os.Remove(f.path); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errs
}
