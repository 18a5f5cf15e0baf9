package iojob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/braggdev/bragg/internal/fiojob"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/unit"
)

// plannedFile is one file with what all clones want of it.
type plannedFile struct {
	path    string
	need    int64
	reads   bool
	writes  bool
	held    *os.File // a block device, once it was checked
	keep    bool     // what is in the page cache may stay: invalidate=0
	made    bool     // by this run
	preRead bool     // into the page cache
	holes   bool     // it gets no space of its own before it is written: fallocate=none
	laidOut bool     // it is brought to its length before the start: not create_on_open
	watched bool     // its device is in the report: not disk_util=0
	flush   bool     // what it is filled with is flushed: not create_fsync=0
}

// layOut makes files long enough and fills those that are read, because reading a hole measures nothing. It never makes
// a file shorter.
func layOut(ctx context.Context, clones []*clone, o Options) (map[string]*plannedFile, error) {
	files := map[string]*plannedFile{}
	var order []string
	for _, c := range clones {
		if c.job.IOEngine == "null" || o.Backend == "null" && !forNames(&c.job) {
			continue
		}
		if all, err := c.layOutNames(); err != nil {
			return nil, err
		} else if all {
			continue
		}
		for _, f := range c.files {
			p := files[f.path]
			if p == nil {
				p = &plannedFile{path: f.path}
				files[f.path] = p
				order = append(order, f.path)
			}
			p.need = max(p.need, f.need)
			reads, writes := c.touches(&f)
			p.writes = p.writes || writes
			p.holes = p.holes || leavesHoles(&c.job) || c.job.IOEngine == "falloc" || c.job.Control.FillDevice
			p.laidOut = p.laidOut || !c.job.Layout.CreateOnOpen
			p.watched = p.watched || !c.job.NoDiskUse
			p.flush = p.flush || !c.job.Layout.NoSync
			p.preRead = p.preRead || c.job.Control.PreRead
			p.keep = p.keep || c.job.Layout.KeepCache
			p.reads = p.reads || reads && !forNames(&c.job) || c.job.Layout.Overwrite
		}
	}
	// Refusals come before the first file is made.
	var guard blockdev.Guard // of regular files only, so that it holds nothing
	for _, path := range order {
		if err := files[path].check(o, &guard); err != nil {
			closeDevices(files)
			return nil, err
		}
	}
	for _, path := range order {
		if err := files[path].make(ctx, o); err != nil {
			closeDevices(files)
			return nil, fmt.Errorf("lay out file %q: %w", path, err)
		}
	}
	for _, c := range clones {
		for i := range c.files {
			if p := files[c.files[i].path]; p != nil {
				c.files[i].size, c.files[i].held = max(c.files[i].size, p.need), p.held
			}
		}
	}
	return files, nil
}

// check refuses what must not or cannot be written.
func (p *plannedFile) check(o Options, guard *blockdev.Guard) error {
	have, err := sizeOf(p.path)
	if !isDevice(p.path) {
		if err != nil || !p.writes && have >= p.need {
			return nil // what is not there is made, and what is only read is not changed
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
	p.held, err = o.OpenDevice(p.path)
	return err
}

// closeDevices gives devices back.
func closeDevices(files map[string]*plannedFile) {
	for _, p := range files {
		if p.held != nil {
			_ = p.held.Close() // everything written was waited for
			p.held = nil
		}
	}
}

// make brings a regular file to its length.
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
		return errors.Join(p.warnOfHoles(have, o), p.invalidate())
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
	if !p.laidOut {
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
			err = errors.Join(err, os.Remove(p.path)) // half a file would pass for a whole one later
		}
		return err
	}
	return p.invalidate()
}

// leavesHoles tells whether a job wants its files without space of their own until they are written.
func leavesHoles(j *fiojob.Job) bool {
	return j.Layout.Fallocate == "none" || j.Layout.Fallocate == "truncate"
}

// warnOfHoles says when a file is to be read that was never written in parts: they are answered without asking a device.
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
	holes, err := blockdev.ReadWarning(f, []blockdev.Extent{{Length: length}})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err == nil && holes > 0 {
		o.say("warning: %s of %s were never written; reads of them are answered by the file system, and the numbers are not those of a device",
			unit.FormatBytes(holes), p.path)
	}
	return err
}

func (p *plannedFile) invalidate() error {
	if p.preRead {
		return readAll(p.path)
	}
	if p.keep {
		return nil
	}
	return dropCache(p.path)
}

const fillBlock = 1 << 20

// fill writes incompressible data from an offset on and waits until it is on the medium, unless nobody wants that.
func (p *plannedFile) fill(ctx context.Context, f *os.File, from int64) error {
	block, to := make([]byte, fillBlock), p.need
	for at := from; at < to; {
		if err := ctx.Err(); err != nil {
			return err
		}
		ioengine.Fill(block, uint64(at))
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

// removeUnlinked removes the regular files of jobs that ask for it, as fio does after a job.
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
