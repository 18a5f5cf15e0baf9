package fiolog

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
)

// Log is a job's configuration of one log.
type Log = fiojob.Log

// nameOf returns the name of a log: PREFIX_bw.N.log, or PREFIX_bw.log if clones share it.
func nameOf(c *Clone, log *Log, suffix string) string {
	prefix := log.Prefix
	if prefix == "" {
		prefix = c.Name
	}
	if c.Logs.Shared {
		return fmt.Sprintf("%s_%s.log", prefix, suffix)
	}
	return fmt.Sprintf("%s_%s.%d.log", prefix, suffix, c.Number)
}

// lines appends lines of a log: time, value, direction, block size, offset and priority if requested, and when the operation
// was issued. The text before and after the value mostly equals that of the previous line, so it is cached. The caches are
// arrays of fixed length, because a copy of known length is a few instructions, and a call of memmove for ten bytes is not.
type lines struct {
	offset, priority, issued bool
	both                     bool // a second value in every line

	millis   int64
	head     [24]byte // the time
	headSize int
	tail     [64]byte // after the value
	tailSize int
	tailOf   [4]int64
	digits   [24]byte // of the value
	size     int
	value    uint64
}

// line is one line of a log.
type line struct {
	millis       int64
	value        uint64
	second       uint64 // the largest of a window, if lines have both values
	direction    uint8
	size, offset int64
	issued       int64 // nanoseconds, on the same axis as millis
	of           thread.Priority
}

// classRealtime is the class of operations that logs mark if they do not have full priorities.
const classRealtime = 1

// lineBytesMax is longer than any line, including what append writes past the end of one.
const lineBytesMax = 256

// append adds a line.
func (l *lines) append(dst []byte, n *line) []byte {
	if cap(dst)-len(dst) < lineBytesMax {
		dst = slices.Grow(dst, max(lineBytesMax, cap(dst)))
	}
	if n.millis != l.millis || l.headSize == 0 {
		l.setHead(n.millis)
	}
	if of := [4]int64{int64(n.direction), n.size, n.offset, int64(n.of)}; of != l.tailOf || l.tailSize == 0 {
		l.setTail(n, of)
	}
	if n.value != l.value || l.size == 0 { // in a closed loop, lat is clat
		l.size, l.value = len(strconv.AppendUint(l.digits[:0], n.value, 10)), n.value
	}
	room := dst[len(dst):cap(dst)]
	*(*[24]byte)(room) = l.head
	at := l.headSize
	*(*[24]byte)(room[at:]) = l.digits
	at += l.size
	if l.both {
		at = len(strconv.AppendUint(append(room[:at], ", "...), n.second, 10))
	}
	*(*[64]byte)(room[at:]) = l.tail
	at += l.tailSize
	if l.issued {
		at = len(strconv.AppendInt(append(room[:at], ", "...), n.issued, 10))
	}
	room[at] = '\n'
	return dst[:len(dst)+at+1]
}

func (l *lines) setHead(millis int64) {
	l.millis = millis
	l.headSize = len(append(strconv.AppendInt(l.head[:0], millis, 10), ", "...))
}

func (l *lines) setTail(n *line, of [4]int64) {
	l.tailOf = of
	t := append(l.tail[:0], ',', ' ', '0'+n.direction, ',', ' ')
	t = strconv.AppendInt(t, n.size, 10)
	if l.offset {
		t = strconv.AppendInt(append(t, ", "...), n.offset, 10)
	}
	switch {
	case l.priority:
		t = fmt.Appendf(t, ", 0x%04x", uint16(n.of))
	case n.of.Class() == classRealtime:
		t = append(t, ", 1"...)
	default:
		t = append(t, ", 0"...)
	}
	l.tailSize = len(t)
}

// eachLog has the files of a clone; nil for logs that it does not write.
type eachLog struct {
	bandwidth, operations, latency, service, submission, histogram *file
}

// write adds the lines of one operation.
func (e *eachLog) write(r *Recorder, o *operation) {
	n := line{millis: r.millis(o.at), direction: o.direction, size: int64(o.size), of: o.priority}
	if r.line.offset {
		n.offset = o.offset
	}
	line := func(f *file, value uint64) {
		n.value = value
		f.text = r.line.append(f.text, &n)
		if len(f.text) >= f.flushAt {
			r.set.flush(f)
		}
	}
	if e.bandwidth != nil {
		// The rate of this one operation, in units of 1000 bytes per second as in fio.
		line(e.bandwidth, uint64(o.size)*1e6/max(1, o.service))
	}
	if e.operations != nil {
		line(e.operations, 1)
	}
	if e.latency != nil {
		line(e.latency, o.latency)
	}
	if r.line.issued { // fio has it only in the following logs
		n.issued = r.clock*int64(time.Millisecond) + o.at - int64(o.service) - r.from
	}
	if e.service != nil {
		line(e.service, o.service)
	}
	if e.submission != nil && o.submit != 0 {
		line(e.submission, o.submit)
	}
}
