package thread

import (
	"bytes"
	"os"
	"sync"
	"time"
)

// cpusWithheld is read at most every cpusWithheldEvery, however many loads ask.
var cpusWithheld struct {
	sync.Mutex
	at     time.Time
	last   Withheld
	groups []throttle
	opened bool
}

const (
	cpusWithheldEvery = 50 * time.Millisecond
	nanosPerTick      = int64(1e9 / 100) // USER_HZ, 100 for every Linux program
)

// WithheldNow returns the latest counts. What cannot be read counts as nothing.
func WithheldNow() Withheld {
	c := &cpusWithheld
	c.Lock()
	defer c.Unlock()
	if !c.opened {
		c.groups, c.opened = throttles(), true
	}
	if time.Since(c.at) < cpusWithheldEvery {
		return c.last
	}
	c.at = time.Now()
	c.last.Stolen, c.last.Used = usedAndStolen("/proc/stat", c.last)
	c.last.Throttled = 0
	for _, g := range c.groups {
		c.last.Throttled += g.nanos()
	}
	return c.last
}

// usedAndStolen reads the first line: ticks of user, nice, system, idle, iowait, irq and softirq, and those in which the
// hypervisor ran other guests.
func usedAndStolen(path string, otherwise Withheld) (stolen, used int64) {
	f, err := os.Open(path)
	if err != nil {
		return otherwise.Stolen, otherwise.Used
	}
	defer f.Close()
	var text [256]byte
	n, _ := f.Read(text[:])
	line, _, ok := bytes.Cut(text[:n], []byte("\n"))
	if !ok || !bytes.HasPrefix(line, []byte("cpu ")) {
		return otherwise.Stolen, otherwise.Used
	}
	numbers := bytes.TrimLeft(line[4:], " ")
	for _, i := range []int{0, 1, 2, 5, 6} {
		used += numberAt(numbers, i, 0)
	}
	return numberAt(numbers, 7, otherwise.Stolen/nanosPerTick) * nanosPerTick, used * nanosPerTick
}

// throttles finds the control groups of this process that may have a limit: its own and those above it, in the hierarchy
// of version 2 or that of cpu in version 1.
func throttles() []throttle {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	return throttlesOf(string(text), "/sys/fs/cgroup")
}

func (g throttle) nanos() int64 {
	text, err := os.ReadFile(g.path)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(g.key+" ")); ok {
			return numberAt(rest, 0, 0) * g.unit
		}
	}
	return 0
}
