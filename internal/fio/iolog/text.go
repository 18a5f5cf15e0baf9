package iolog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// text reads fio's text logs. A line is "file action", "file action offset length", in version 3 with the time in
// microseconds in front:
//
//	fio version 3 iolog
//	20 disk add
//	153 disk open
//	157 disk read 0 65536
//	180 disk sync 0 0
//	195 disk close
//
// Names may contain blanks: a line is parsed from both ends.
type text struct {
	timed  bool // version 3
	line   int
	source []byte // the line
	offset int64  // nanoseconds of recordings before this one in the same file
	latest int64  // time of the last line
}

const (
	headerStart = "fio version "
	headerEnd   = " iolog"

	// How traces of blktrace begin, in either byte order: BLK_IO_TRACE_MAGIC and version 7 of linux/blktrace_api.h.
	traceLittle = "\x07tae"
	traceBig    = "eat\x07"
)

func newText(r *Reader) (*text, error) {
	t := &text{}
	if start, err := r.in.Peek(len(traceBig)); err == nil && (string(start) == traceLittle || string(start) == traceBig) {
		return nil, t.fault(r, span{0, 0}, "iolog-trace", "this is a binary trace of blktrace, which only fio replays", "run the job with fio itself")
	}
	err := t.read(r)
	if errors.Is(err, io.EOF) {
		return nil, t.fault(r, span{0, 0}, "empty-iolog", "the log is empty", "it starts with \"fio version 3 iolog\"")
	}
	if err != nil {
		return nil, err
	}
	if !t.header() {
		return nil, t.fault(r, span{0, len(t.source)}, "no-iolog", "this is not a log of fio",
			"a log starts with \"fio version 2 iolog\" or \"fio version 3 iolog\"")
	}
	return t, nil
}

// header reads the first line of a recording and sets the version.
func (t *text) header() bool {
	version, found := bytes.CutPrefix(bytes.TrimRight(t.source, " \t"), []byte(headerStart))
	if !found {
		return false
	}
	version, found = bytes.CutSuffix(version, []byte(headerEnd))
	switch {
	case found && string(version) == "2":
		t.timed = false
	case found && string(version) == "3":
		t.timed = true
	default:
		return false
	}
	return true
}

func (t *text) version() string {
	if t.timed {
		return "fio iolog version 3"
	}
	return "fio iolog version 2"
}

// span is part of a line: first byte and length.
type span struct{ from, width int }

// fault returns a fault of part of the line.
func (t *text) fault(r *Reader, at span, code, message, hint string) *fault {
	return &fault{Diagnostic: diag.Diagnostic{
		Code: code, Severity: diag.SeverityError, Pos: diag.Position{File: r.name, Line: t.line, Column: at.from + 1}, Width: at.width,
		Source: strings.ToValidUTF8(string(t.source), "?"), Message: message, Hint: hint,
	}}
}

// read reads the next line, without its end.
func (t *text) read(r *Reader) error {
	line, err := r.in.ReadSlice('\n')
	t.line++
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		return io.EOF
	case errors.Is(err, io.EOF):
		r.counts.noEnd = true
	case errors.Is(err, bufio.ErrBufferFull):
	case err != nil:
		return err
	}
	if len(line) > lineBytesMax {
		t.source = line[:64]
		f := t.fault(r, span{0, 0}, "iolog-line", fmt.Sprintf("the line has more than %d bytes", lineBytesMax), "")
		f.final = true
		return f
	}
	t.source = bytes.TrimRight(line, "\r\n")
	return nil
}

func (t *text) next(r *Reader, a *Action) error {
	for {
		if err := t.read(r); err != nil {
			return err
		}
		if len(t.source) == 0 {
			continue
		}
		if t.source[0] == 'f' && t.header() {
			// fio appends: the log of another run, whose time restarts at zero.
			r.counts.recordings++
			t.offset = t.latest
			continue
		}
		waited, err := t.action(r, a)
		if err != nil {
			return err
		}
		if !waited {
			return nil
		}
	}
}

// action reads one line. waited reports whether it was a wait, which does not count as an action.
func (t *text) action(r *Reader, a *Action) (waited bool, err error) {
	rest := 0
	if t.timed {
		if rest, err = t.time(r); err != nil {
			return false, err
		}
	}
	a.Nanos = t.latest
	// From the right: "… action offset length", or "… action".
	lengthAt, lengthEnd := lastWord(t.source, len(t.source))
	offsetAt, offsetEnd := lastWord(t.source, lengthAt)
	actionAt, actionEnd := lastWord(t.source, offsetAt)
	if lengthAt <= rest {
		return false, t.fault(r, span{lengthAt, lengthEnd - lengthAt}, "iolog-line", "want a file and an action", t.shape())
	}
	if actionAt > rest {
		kind, wait, known := ioKind(t.source[actionAt:actionEnd])
		if known {
			name := bytes.TrimSpace(t.source[rest:actionAt])
			offset, ok := number(t.source[offsetAt:offsetEnd])
			if !ok || offset > offsetMax && !wait {
				return false, t.badNumber(r, offsetAt, offsetEnd, "offset")
			}
			size, ok := number(t.source[lengthAt:lengthEnd])
			if !ok || size > sizeMax && kind < Sync && kind != Trim || size > offsetMax {
				return false, t.badNumber(r, lengthAt, lengthEnd, "length")
			}
			if wait {
				return true, t.wait(r, offset, offsetAt, offsetEnd)
			}
			a.Kind, a.Offset, a.Size = kind, offset, size
			if a.File = r.file(name); a.File < 0 {
				return false, t.unknownFile(r, name)
			}
			return false, nil
		}
	}
	return false, t.fileAction(r, a, rest, lengthAt, lengthEnd)
}

// fileAction reads "file add", "file open" or "file close".
func (t *text) fileAction(r *Reader, a *Action, rest, at, end int) error {
	name := bytes.TrimSpace(t.source[rest:at])
	switch word := t.source[at:end]; string(word) {
	case "add":
		a.Kind = addFile
		if r.file(name) < 0 {
			if len(name) > nameBytesMax || bytes.IndexByte(name, 0) >= 0 {
				return t.fault(r, span{rest, at - rest}, "iolog-file", fmt.Sprintf("want the name of a file of at most %d bytes", nameBytesMax), "")
			}
			if _, err := r.add(string(name)); err != nil {
				f := t.fault(r, span{rest, at - rest}, "iolog-file", "the log adds "+err.Error(), "")
				f.final = true
				return f
			}
		}
	case "open", "close":
		a.Kind = openFile
		if word[0] == 'c' {
			a.Kind = closeFile
		}
		if r.file(name) < 0 {
			return t.unknownFile(r, name)
		}
	default:
		if _, _, known := ioKind(word); known {
			return t.fault(r, span{at, end - at}, "iolog-line", fmt.Sprintf("%s needs an offset and a length behind it", word), t.shape())
		}
		return t.unknownAction(r, rest, at, end)
	}
	return nil
}

// unknownAction reports an unknown action: the word after the name, if names have no blanks.
func (t *text) unknownAction(r *Reader, rest, at, end int) error {
	line := t.source
	from := rest
	for from < len(line) && isBlank(line[from]) {
		from++
	}
	for from < len(line) && !isBlank(line[from]) {
		from++
	}
	for from < len(line) && isBlank(line[from]) {
		from++
	}
	if from < len(line) {
		at = from
		for end = at; end < len(line) && !isBlank(line[end]); end++ {
		}
	}
	word := string(line[at:min(end, at+64)])
	if _, _, known := ioKind([]byte(word)); known {
		return t.fault(r, span{at, end - at}, "iolog-line", word+" needs an offset and a length behind it", t.shape())
	}
	if line[rest] == '#' || line[rest] == ';' {
		return t.fault(r, span{rest, len(line) - rest}, "iolog-line", "a log has no comments", t.shape())
	}
	hint := t.shape()
	if near := diag.Nearest(word, append(kindNames[:], "wait")); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return t.fault(r, span{at, end - at}, "iolog-action", fmt.Sprintf("unknown action %q", word), hint)
}

func (t *text) shape() string {
	if t.timed {
		return "a line is \"microseconds file add|open|close\" or \"microseconds file read|write|trim|sync|datasync offset length\""
	}
	return "a line is \"file add|open|close\" or \"file read|write|trim|sync|datasync|wait offset length\""
}

func (t *text) unknownFile(r *Reader, name []byte) error {
	at := bytes.Index(t.source, name)
	hint := "a line with \"add\" must come first"
	var names []string
	for n := range r.byName {
		if len(names) < 64 {
			names = append(names, n)
		}
	}
	shown := string(name[:min(len(name), 256)])
	if near := diag.Nearest(shown, names); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return t.fault(r, span{at, len(name)}, "iolog-file", fmt.Sprintf("file %q was not added", shown), hint)
}

func (t *text) badNumber(r *Reader, from, end int, what string) error {
	return t.fault(r, span{from, end - from}, "iolog-number", fmt.Sprintf("invalid %s in bytes", what),
		fmt.Sprintf("want digits only, at most %d for offsets and %d for lengths", offsetMax, sizeMax))
}

// time reads the time at the start of a line and returns where the rest begins.
func (t *text) time(r *Reader) (rest int, err error) {
	line := t.source
	start := 0
	for start < len(line) && isBlank(line[start]) {
		start++
	}
	end := start
	for end < len(line) && !isBlank(line[end]) {
		end++
	}
	micros, ok := number(line[start:end])
	if !ok || micros > nanosMax/1000 {
		return 0, t.fault(r, span{start, end - start}, "iolog-time", "a line of version 3 starts with its time in microseconds", t.shape())
	}
	t.latest = min(t.offset+micros*1000, nanosMax)
	return end, nil
}

// According to fio's manual, shorter waits are discarded.
const waitMicrosMin = 100

// wait moves the time of the following operations.
func (t *text) wait(r *Reader, amount int64, from, end int) error {
	if t.timed {
		return t.fault(r, span{from, end - from}, "iolog-action", "a log of version 3 has no waits: each line has its time", "")
	}
	if amount > nanosMax/1e6 {
		return t.fault(r, span{from, end - from}, "iolog-time", "the wait is longer than a hundred years", "")
	}
	r.counts.waits++
	switch {
	case amount < waitMicrosMin:
	case r.options.WaitsOfFio:
		t.latest = min(max(t.latest, t.offset+amount*1e6), nanosMax)
	default:
		t.latest = min(t.latest+amount*1000, nanosMax)
	}
	return nil
}

const nameBytesMax = 4096

// ioKind reads an action with an offset and a length.
func ioKind(word []byte) (kind Kind, wait, known bool) {
	switch string(word) {
	case "read":
		return Read, false, true
	case "write":
		return Write, false, true
	case "trim":
		return Trim, false, true
	case "sync":
		return Sync, false, true
	case "datasync":
		return DataSync, false, true
	case "wait":
		return Sync, true, true
	}
	return 0, false, false
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' }

// lastWord returns start and end of the last word before end.
func lastWord(line []byte, end int) (from, to int) {
	for end > 0 && isBlank(line[end-1]) {
		end--
	}
	from = end
	for from > 0 && !isBlank(line[from-1]) {
		from--
	}
	return from, end
}

// number reads decimal digits.
func number(word []byte) (int64, bool) {
	if len(word) == 0 {
		return 0, false
	}
	n := int64(0)
	for _, c := range word {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
