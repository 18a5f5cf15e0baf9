// Package iolog reads and writes recordings of I/O: fio's text logs (versions 2 and 3).
//
//	file ──Open──▶ Log: checked once, every fault reported, files and sizes known ──Reader──▶ Action, Action, …
//	operations that were issued ──Writer──▶ text of version 2 or 3
//
// Nothing is held in memory but the names of files and a coarse schedule: a log may be larger than the machine's memory.
// A log is untrusted: names, offsets and sizes are bounded, and nothing that a log names is opened here.
// docs/formats/iolog.md describes the formats. What becomes of actions is not decided here.
package iolog

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/braggdev/bragg/internal/diag"
)

// Kind is what an Action does.
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

// Action is one operation of a log, as it is to be done: redirected, scaled and aligned.
type Action struct {
	// Nanos is when it is due, from the first operation of the log on. It never goes back.
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
	// nanosMax, a hundred years, keeps times from overflowing when they are scaled.
	nanosMax    = int64(100) * 365 * 86400 * 1e9
	sizeMax     = int64(1) << 30
	offsetMax   = int64(1) << 60
	readerBytes = 256 << 10
)

// Options say how a log is to be done. The zero value changes nothing.
type Options struct {
	// Redirect, if not empty, replaces every file and device of the log.
	Redirect string
	// SpeedPercent is how fast time goes: 200 is twice as fast as recorded. 0 is 100.
	SpeedPercent int64
	// Scale divides offsets; Align then lowers them to a multiple of it. 0 and 1 change nothing.
	Scale, Align int64
	// Skip leaves out operations of these kinds.
	Skip [KindCount]bool
	// WaitsOfFio takes "wait" of version 2 as fio 3.33 does, as milliseconds since the start, and not as fio's manual
	// says, as microseconds since the wait before.
	WaitsOfFio bool
}

// Log is a log that was looked through.
type Log struct {
	Summary
	Path    string
	handle  *os.File
	size    int64
	options Options
}

// Open looks through the log in a file, whole. Faults of the log are a *diag.ListError that names lines. The caller closes
// the Log.
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

// Reader starts a reading of its own from the log's beginning. Several may read at the same time.
func (l *Log) Reader() (*Reader, error) {
	return NewReader(l.Path, io.NewSectionReader(l.handle, 0, l.size), l.options)
}

// Close ends all readings.
func (l *Log) Close() error { return l.handle.Close() }
