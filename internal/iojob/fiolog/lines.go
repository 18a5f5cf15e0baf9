package fiolog

import (
	"fmt"
	"strconv"

	"github.com/braggdev/bragg/internal/fiojob"
	"github.com/braggdev/bragg/internal/load/ioengine"
)

// Log is what a job says of one log.
type Log = fiojob.Log

// nameOf returns the name of a log: PREFIX_bw.N.log, or PREFIX_bw.log where clones share it.
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

// lines appends lines of a log: time, value, direction, block size, offset where it is asked for, priority. What stands
// before and after the value is mostly that of the line before, and kept.
type lines struct {
	offset, priority bool
	millis           int64
	head             []byte // the time
	tail             []byte // behind the value
	tailOf           [4]int64
}

// line is one line of a log.
type line struct {
	millis       int64
	value        uint64
	second       uint64 // beside value, with hasSecond
	hasSecond    bool
	direction    uint8
	size, offset int64
	of           ioengine.Priority
}

// classRealtime is the class of operations that logs mark where they do not have priorities in full.
const classRealtime = 1

// append adds a line.
func (l *lines) append(dst []byte, n *line) []byte {
	dst = append(dst, l.headOf(n.millis)...)
	dst = strconv.AppendUint(dst, n.value, 10)
	if n.hasSecond {
		dst = strconv.AppendUint(append(dst, ", "...), n.second, 10)
	}
	return append(dst, l.tailFor(n)...)
}

func (l *lines) headOf(millis int64) []byte {
	if millis != l.millis || len(l.head) == 0 {
		l.millis = millis
		l.head = append(strconv.AppendInt(l.head[:0], millis, 10), ", "...)
	}
	return l.head
}

func (l *lines) tailFor(n *line) []byte {
	if of := [4]int64{int64(n.direction), n.size, n.offset, int64(n.of)}; of != l.tailOf || len(l.tail) == 0 {
		l.tailOf = of
		l.tail = append(l.tail[:0], ", "...)
		l.tail = append(l.tail, '0'+n.direction)
		l.tail = append(l.tail, ", "...)
		l.tail = strconv.AppendInt(l.tail, n.size, 10)
		if l.offset {
			l.tail = append(l.tail, ", "...)
			l.tail = strconv.AppendInt(l.tail, n.offset, 10)
		}
		switch {
		case l.priority:
			l.tail = fmt.Appendf(l.tail, ", 0x%04x\n", uint16(n.of))
		case n.of.Class() == classRealtime:
			l.tail = append(l.tail, ", 1\n"...)
		default:
			l.tail = append(l.tail, ", 0\n"...)
		}
	}
	return l.tail
}

// eachLog are the files of a clone; nil where it does not write one.
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
		// The rate of this one operation, in units of 1000 bytes a second as fio has it.
		line(e.bandwidth, uint64(o.size)*1e6/max(1, o.service))
	}
	if e.operations != nil {
		line(e.operations, 1)
	}
	if e.latency != nil {
		line(e.latency, o.latency)
	}
	if e.service != nil {
		line(e.service, o.service)
	}
	if e.submission != nil && o.submit != 0 {
		line(e.submission, o.submit)
	}
}
