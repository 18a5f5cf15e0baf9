// Package iolog reads and writes recordings of I/O: fio's text logs (versions 2 and 3).
//
//	file ──Open──▶ Log: checked once, every fault reported, files and sizes known ──Reader──▶ Action, Action, …
//	operations that were issued ──Writer──▶ text of version 2 or 3
//
// Only the names of files and a coarse schedule are held in memory: a log may be larger than the machine's memory. A log is
// untrusted: names, offsets and sizes are bounded, and this package opens no file that a log names. docs/formats/iolog.md
// describes the formats. The package does not execute actions.
package iolog

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/braggdev/bragg/internal/diag"
)

// Kind is the kind of an Action.
type Kind uint8

// Kinds of actions.
const (
	Read Kind = iota
	Write
	Trim
	Sync
	DataSync

	// File actions of text logs are read and not reported.
	addFile
	openFile
	closeFile
)

// KindCount is the number of kinds that are I/O.
const KindCount = int(DataSync) + 1

var kindNames = [...]string{"read", "write", "trim", "sync", "datasync", "add", "open", "close"}

func (k Kind) String() string { return kindNames[k] }

// Action is one operation of a log, in the form for execution: redirected, scaled and aligned.
type Action struct {
	// Nanos is the due time, from the first operation of the log. It never decreases.
	Nanos        int64
	Offset, Size int64 // bytes; 0 of Sync and DataSync
	File         int32 // index in Summary.Files
	Kind         Kind
}

// Bounds of a log.
const (
	lineBytesMax = 16 << 10
	filesMax     = 1 << 14
	problemsMax  = 20
	// nanosMax, a hundred years, prevents overflow when times are scaled.
	nanosMax    = int64(100) * 365 * 86400 * 1e9
	sizeMax     = int64(1) << 30
	offsetMax   = int64(1) << 60
	readerBytes = 256 << 10
)

// Options define how a log is replayed. The zero value changes nothing.
type Options struct {
	// Redirect, if not empty, replaces every file and device of the log.
	Redirect string
	// SpeedPercent is the speed of replay: 200 is twice as fast as recorded. 0 is 100.
	SpeedPercent int64
	// Scale divides offsets; Align then rounds them down to a multiple of it. 0 and 1 change nothing.
	Scale, Align int64
	// Skip leaves out operations of these kinds.
	Skip [KindCount]bool
	// WaitsOfFio interprets "wait" of version 2 as fio 3.33 does, as milliseconds since the start, instead of microseconds
	// since the previous wait, as in fio's manual.
	WaitsOfFio bool
}

// Log is a log that was scanned.
type Log struct {
	Summary
	Path    string
	handle  *os.File
	size    int64
	options Options
}

// Open scans the whole log in a file. Faults of the log are a *diag.ListError that names lines. The caller closes the Log.
func Open(path string, o Options) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &diag.Error{Code: "read-iolog", Message: fmt.Sprintf("read iolog %q", path), Err: err, Exit: diag.ExitData}
	}
	l := &Log{Path: path, handle: f, options: o}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file: a log is read once completely before its replay")
	}
	if err == nil {
		l.size = info.Size()
		l.Summary, err = Scan(path, io.NewSectionReader(f, 0, l.size), o)
	}
	if err != nil {
		_ = f.Close() // it was only read
		var faults *diag.ListError
		if !errors.As(err, &faults) {
			err = &diag.Error{Code: "read-iolog", Message: fmt.Sprintf("read iolog %q", path), Err: err, Exit: diag.ExitData}
		}
		return nil, err
	}
	return l, nil
}

// Reader starts an independent reader at the log's beginning. Several may read at the same time.
func (l *Log) Reader() (*Reader, error) {
	return NewReader(l.Path, io.NewSectionReader(l.handle, 0, l.size), l.options)
}

// Close ends all readers.
func (l *Log) Close() error { return l.handle.Close() }
