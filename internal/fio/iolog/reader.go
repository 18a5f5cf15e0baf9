package iolog

import (
	"bufio"
	"fmt"
	"io"
	"math/bits"

	"github.com/braggdev/bragg/internal/diag"
)

// Reader reads a log, action after action. It allocates only for names of files.
type Reader struct {
	name    string
	in      *bufio.Reader
	options Options
	text    *text

	byName map[string]int32 // files that were added
	added  []addedFile
	names  []string // of files with operations, in the order of their first ones

	// The time axis: the log's time minus base, plus the time of earlier recordings in the same file.
	based bool
	base  int64 // nanoseconds of the first operation
	last  int64 // of the previous operation, unscaled

	counts oddities
}

// addedFile is a file or device that the log has added.
type addedFile struct {
	name string
	to   int32 // index in Summary.Files, −1 before its first operation
}

// oddities count skipped or fixed parts, for one warning each.
type oddities struct {
	backwards, empty, files int64
	recordings              int64 // text logs appended to each other
	waits                   int64
	noEnd                   bool // the last line has no line feed
}

// fault is a fault at one place, after which reading may continue.
type fault struct {
	diag.Diagnostic
	final bool // the rest of the log cannot be read
}

func (f *fault) Error() string {
	if at := f.Pos.String(); at != "" {
		return at + ": " + f.Message
	}
	return f.Message
}

// NewReader begins to read. name is for messages.
func NewReader(name string, in io.Reader, o Options) (*Reader, error) {
	r := &Reader{name: name, in: bufio.NewReaderSize(in, readerBytes), options: o, byName: map[string]int32{}}
	text, err := newText(r)
	if err != nil {
		return nil, err
	}
	r.text = text
	r.based = !text.timed // waits before the first operation count
	return r, nil
}

// Next reads the next operation into a and returns io.EOF after the last one.
func (r *Reader) Next(a *Action) error {
	for {
		if err := r.text.next(r, a); err != nil {
			return err
		}
		if a.Kind > DataSync {
			r.counts.files++
			continue
		}
		if a.Kind <= Trim && a.Size == 0 {
			r.counts.empty++
			continue
		}
		r.place(a)
		if !r.options.Skip[a.Kind] {
			a.File = r.used(a.File)
			return nil
		}
	}
}

// place converts recorded place and time into those of the replay.
func (r *Reader) place(a *Action) {
	if !r.based {
		r.based, r.base = true, a.Nanos
	}
	at := a.Nanos - r.base
	if at < r.last {
		r.counts.backwards++
		at = r.last
	}
	r.last = at
	a.Nanos = scaleTime(at, r.options.SpeedPercent)
	if a.Kind > Trim {
		a.Offset, a.Size = 0, 0
		return
	}
	if r.options.Scale > 1 {
		a.Offset /= r.options.Scale
	}
	if r.options.Align > 1 {
		a.Offset -= a.Offset % r.options.Align
	}
}

// scaleTime divides a time of at most nanosMax by percent, over 128 bits.
func scaleTime(nanos, percent int64) int64 {
	if percent <= 0 || percent == 100 {
		return nanos
	}
	high, low := bits.Mul64(uint64(nanos), 100)
	if high >= uint64(percent) {
		return 1<<63 - 1
	}
	quotient, _ := bits.Div64(high, low, uint64(percent))
	return int64(min(quotient, 1<<63-1))
}

// file returns the number of a file by its name, −1 if the log has not added it.
func (r *Reader) file(name []byte) int32 {
	if i, ok := r.byName[string(name)]; ok {
		return i
	}
	return -1
}

// add adds a file.
func (r *Reader) add(name string) (int32, error) {
	if len(r.added) >= filesMax {
		return 0, fmt.Errorf("more than %d files", filesMax)
	}
	at := int32(len(r.added))
	r.added = append(r.added, addedFile{name: name, to: -1})
	r.byName[name] = at
	return at, nil
}

// used returns the index in Summary.Files of a file that was added.
func (r *Reader) used(file int32) int32 {
	f := &r.added[file]
	switch {
	case f.to >= 0:
	case r.options.Redirect == "":
		f.to = int32(len(r.names))
		r.names = append(r.names, f.name)
	default:
		f.to = 0
		r.names = append(r.names[:0], r.options.Redirect)
	}
	return f.to
}
