package thread

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// runQueue reads how long the thread that opened it was ready to run and waited for a CPU.
type runQueue struct {
	file   *os.File // schedstat of the thread; nil where there is none, or once it was closed
	id     int      // of the thread
	last   int64
	still  unfinishedWait
	lapped time.Time // when the former lap ended
	waited int64     // not yet told when the worker left the thread
	away   bool      // between Leave and Arrive: what the thread waits for is not the worker's
}

// openRunQueue is called on the thread itself.
func openRunQueue() runQueue {
	f, err := os.Open("/proc/thread-self/schedstat")
	if err != nil {
		return runQueue{} // a kernel without it, or no descriptor left: waits are not known
	}
	q := runQueue{file: f, id: unix.Gettid(), lapped: time.Now()}
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
		q.waited, q.away = q.lap(false), true
	}
}

func (q *runQueue) arrive(moved bool) {
	waited := q.waited
	if moved || q.file == nil { // no descriptor may have been left before
		q.close()
		*q = openRunQueue()
	}
	q.last, q.waited, q.away, q.lapped = q.read(), waited, false, time.Now()
}

// lap returns the wait since the former lap. idle says that the thread used no CPU time meanwhile: if it is ready to run, it waits
// still.
func (q *runQueue) lap(idle bool) int64 {
	now, at := q.last, time.Now()
	if !q.away {
		now = q.read()
	}
	counted := max(0, q.waited+now-q.last)
	waiting := idle && counted == 0 && !q.away && q.ready()
	waited := q.still.lap(counted, at.Sub(q.lapped).Nanoseconds(), waiting)
	q.last, q.waited, q.lapped = now, 0, at
	return waited
}

// ready reports whether the thread is on a run queue: field 3 of its stat (proc_pid_stat(5)).
func (q *runQueue) ready() bool {
	text, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(q.id) + "/stat")
	if err != nil {
		return false
	}
	end := bytes.LastIndexByte(text, ')') // of the name, which may contain anything
	return end >= 0 && bytes.HasPrefix(text[end+1:], []byte(" R"))
}

// unfinishedWait is the reported part of a wait that the kernel has not counted yet: it counts one when it ends.
type unfinishedWait struct{ reported int64 }

// lap returns the wait in a lap of some length, of which the kernel counted some; waiting says that a wait lasts over all of it.
func (u *unfinishedWait) lap(counted, length int64, waiting bool) int64 {
	if waiting {
		u.reported += length
		return length
	}
	known := min(u.reported, counted)
	u.reported = 0
	return counted - known
}

func (q *runQueue) close() {
	if q.file == nil {
		return
	}
	q.leave()
	_ = q.file.Close()
	q.file = nil
}
