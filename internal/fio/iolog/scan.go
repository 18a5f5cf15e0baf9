package iolog

import (
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/braggdev/bragg/internal/diag"
)

// Summary is what a scan found out about a log.
type Summary struct {
	Version    string
	Files      []File // with operations, in the order of their first ones
	Operations [KindCount]int64
	Bytes      [KindCount]int64
	SizeMax    int64 // of one read or write
	// Align divides all offsets and sizes of reads and writes.
	Align    int64
	Nanos    int64 // when the last operation is due
	Schedule Schedule
	Warnings diag.List
}

// File is what a log does to one file.
type File struct {
	Name       string
	End        int64 // after the last byte that is read, written or trimmed
	Operations [KindCount]int64
}

// Writes reports whether the log changes the file.
func (f *File) Writes() bool { return f.Operations[Write] > 0 || f.Operations[Trim] > 0 }

// Data is the number of reads, writes and trims.
func (s *Summary) Data() int64 { return s.Operations[Read] + s.Operations[Write] + s.Operations[Trim] }

// Scan reads a log to its end. Faults are returned as a *diag.ListError, at most problemsMax of them.
func Scan(name string, in io.Reader, o Options) (Summary, error) {
	r, err := NewReader(name, in, o)
	if err != nil {
		var f *fault
		if errors.As(err, &f) {
			return Summary{}, diag.List{f.Diagnostic}.Err()
		}
		return Summary{}, err
	}
	var s Summary
	var list faults
	var bitsUsed uint64
	var a Action
	for len(list) < problemsMax {
		err := r.Next(&a)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			final, other := list.fault(err)
			if other != nil {
				return s, other
			}
			if final {
				break
			}
			continue
		}
		s.count(&a)
		if a.Kind <= Write {
			bitsUsed |= uint64(a.Offset | a.Size)
		}
	}
	s.Version = r.text.version()
	for i, n := range r.names {
		s.file(int32(i)).Name = n
	}
	s.Align = 1 << min(bits.TrailingZeros64(bitsUsed), 30)
	if err := diag.List(list).Err(); err != nil {
		return s, err
	}
	return s, s.judge(r)
}

// faults are the faults of one log.
type faults diag.List

// fault records a fault of the log and reports whether the rest cannot be read; other is an error of another kind.
func (l *faults) fault(err error) (final bool, other error) {
	var f *fault
	if !errors.As(err, &f) {
		return false, err
	}
	*l = append(*l, f.Diagnostic)
	return f.final, nil
}

func (s *Summary) file(i int32) *File {
	for int(i) >= len(s.Files) {
		s.Files = append(s.Files, File{})
	}
	return &s.Files[i]
}

func (s *Summary) count(a *Action) {
	f := s.file(a.File)
	f.Operations[a.Kind]++
	s.Operations[a.Kind]++
	s.Bytes[a.Kind] += a.Size
	s.Nanos = a.Nanos
	if a.Kind > Trim {
		return
	}
	f.End = max(f.End, a.Offset+a.Size)
	if a.Kind != Trim {
		s.SizeMax = max(s.SizeMax, a.Size)
	}
	s.Schedule.add(a.Nanos)
}

// judge reports what was skipped, and refuses a log without operations.
func (s *Summary) judge(r *Reader) error {
	c := &r.counts
	warn := func(n int64, code, format string) {
		if n > 0 {
			s.Warnings.Warnf(diag.Position{File: r.name}, code, format, n)
		}
	}
	warn(c.backwards, "iolog-backwards", "%d operations have a time before that of the operation in front of them; they are due together with it")
	warn(c.empty, "iolog-empty", "%d operations have no length and are left out")
	warn(c.recordings, "iolog-appended", "%d more recordings were appended to the first; they follow one after the other")
	if c.noEnd {
		s.Warnings.Warnf(diag.Position{File: r.name}, "iolog-cut", "the last line has no end; the log may have been cut off there")
	}
	if c.waits > 0 && !r.options.WaitsOfFio {
		s.Warnings.Warnf(diag.Position{File: r.name}, "iolog-waits", "waits are taken as microseconds since the wait before, "+
			"as fio's manual has it; fio 3.33 itself waits for as many milliseconds since the start")
	}
	if s.Operations != [KindCount]int64{} {
		return nil
	}
	return diag.List{{
		Code: "iolog-without-operations", Severity: diag.SeverityError, Pos: diag.Position{File: r.name},
		Message: fmt.Sprintf("the %s has no operation to replay", s.Version),
	}}.Err()
}
