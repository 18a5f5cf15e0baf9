package thread

import (
	"golang.org/x/sys/unix"
)

// Clock reads the CPU time of the thread that made it and its waits for a CPU, from any thread.
type Clock struct {
	id      int32
	base    int64
	stopped int64 // what was used, once the thread has given up
	queue   runQueue
	lapped  int64 // CPU time at the end of the former lap
}

// NewClock is called on a goroutine that is locked to its thread.
func NewClock() Clock {
	c := Clock{id: clockOfThread(), queue: openRunQueue()}
	c.base = c.read()
	return c
}

// clockOfThread returns the CPU clock of this thread: the complement of its id, shifted, with the bits for "one thread" (4) and
// "scheduler" (2); see clock_getcpuclockid(3) and the kernel's posix-timers.h.
func clockOfThread() int32 { return ^int32(unix.Gettid())<<3 | 6 }

// ID is the kernel's id of this thread.
func ID() int { return unix.Gettid() }

// Lap returns the CPU time and the waits since the former lap.
func (c *Clock) Lap() (cpu, waited int64) {
	now := c.Nanos()
	cpu, c.lapped = now-c.lapped, now
	return cpu, c.queue.lap(cpu == 0)
}

func (c *Clock) read() int64 {
	var ts unix.Timespec
	if c.id == 0 || unix.ClockGettime(c.id, &ts) != nil {
		return c.base
	}
	return ts.Nano()
}

// Nanos returns the CPU time used since NewClock.
func (c *Clock) Nanos() int64 {
	if c.stopped != 0 {
		return c.stopped
	}
	return c.read() - c.base
}

// Stop is called before the goroutine leaves the thread to others.
func (c *Clock) Stop() {
	c.Leave()
	c.queue.close()
}

// Leave is called before the thread may work for others, and Arrive after it, on that thread or on another one. What others used
// meanwhile is not counted.
func (c *Clock) Leave() {
	c.stopped = max(1, c.read()-c.base)
	c.queue.leave()
}

func (c *Clock) Arrive(moved bool) {
	if moved {
		c.id = clockOfThread()
	}
	c.queue.arrive(moved)
	c.base, c.stopped = c.read()-c.stopped, 0
}

// Pause sleeps on the thread itself, because a timer of the runtime wakes a locked thread much later. Signals may cut
// it short; callers look at the clock anyway.
func Pause(nanos int64) {
	if nanos <= 0 {
		return
	}
	ts := unix.NsecToTimespec(nanos)
	_ = unix.Nanosleep(&ts, nil)
}

// SharpenTimers lets sleeps of this thread end when asked and not up to 50 µs later, the default slack.
func SharpenTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }
