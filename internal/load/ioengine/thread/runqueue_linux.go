package thread

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// runQueue reads how long the thread that opened it was ready to run and waited for a CPU.
type runQueue struct {
	file   *os.File // schedstat of the thread; nil where there is none, or once it was closed
	last   int64
	waited int64 // not yet told when the worker left the thread
	away   bool  // between Leave and Arrive: what the thread waits for is not the worker's
}

// openRunQueue is called on the thread itself.
func openRunQueue() runQueue {
	f, err := os.Open("/proc/thread-self/schedstat")
	if err != nil {
		return runQueue{} // a kernel without it, or no descriptor left: waits are not known
	}
	q := runQueue{file: f}
	q.last = q.read()
	return q
}

// read returns the second of the three numbers of schedstat: nanoseconds of waiting (Documentation/scheduler/sched-stats.rst).
func (q *runQueue) read() int64 {
	if q.file == nil {
		return q.last
	}
	var text [96]byte
	n, err := unix.Pread(int(q.file.Fd()), text[:], 0)
	if err != nil {
		return q.last
	}
	return numberAt(text[:n], 1, q.last)
}

// numberAt returns a number of a line of numbers between blanks.
func numberAt(line []byte, index int, otherwise int64) int64 {
	for range index {
		_, rest, ok := bytes.Cut(line, []byte(" "))
		if !ok {
			return otherwise
		}
		line = bytes.TrimLeft(rest, " ")
	}
	if end := bytes.IndexAny(line, " \n"); end >= 0 {
		line = line[:end]
	}
	n, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// leave and arrive are those of Clock.
func (q *runQueue) leave() {
	if !q.away {
		q.waited, q.away = q.lap(), true
	}
}

func (q *runQueue) arrive(moved bool) {
	waited := q.waited
	if moved || q.file == nil { // no descriptor may have been left before
		q.close()
		*q = openRunQueue()
	}
	q.last, q.waited, q.away = q.read(), waited, false
}

func (q *runQueue) lap() int64 {
	now := q.last
	if !q.away {
		now = q.read()
	}
	waited := q.waited + now - q.last
	q.last, q.waited = now, 0
	return max(0, waited)
}

func (q *runQueue) close() {
	if q.file == nil {
		return
	}
	q.leave()
	_ = q.file.Close()
	q.file = nil
}
