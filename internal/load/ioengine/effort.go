package ioengine

import (
	"path"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
)

// threaded is a back end with threads of its own.
type threaded interface {
	// lap returns the most that one of them used and waited since the former lap. It is called from another goroutine.
	lap() (busiest, waited int64)
}

// effort returns how hard the threads of all workers had it since it was called last, in an interval of some length.
func (t *timeline) effort(length int64) interval.Effort {
	var e interval.Effort
	for _, w := range t.workers {
		w.mu.Lock()
		busiest, waited := w.cpu.lap()
		w.mu.Unlock()
		e.Join(interval.Effort{BusiestNanos: busiest, WaitedNanos: waited})
		if b, ok := w.backend.(threaded); ok {
			busiest, waited = b.lap()
			e.Join(interval.Effort{BusiestNanos: busiest, WaitedNanos: waited})
		}
	}
	now := readWithheld()
	e.StolenNanos, e.ThrottledNanos = now.stolen-t.withheld.stolen, now.throttled-t.withheld.throttled
	t.withheld = now
	// A wait is counted when it ends, so that it may be longer than the interval in which it does.
	e.BusiestNanos, e.WaitedNanos = min(e.BusiestNanos, length), min(e.WaitedNanos, length)
	return e
}

func (b *psyncBackend) lap() (busiest, waited int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.clocks {
		c, w := b.clocks[i].lap()
		busiest, waited = max(busiest, c), max(waited, w)
	}
	return busiest, waited
}

// throttlesOf reads a text like /proc/self/cgroup: lines of number, controllers and path. root is where control groups
// are mounted.
func throttlesOf(text, root string) []throttle {
	var found []throttle
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		base, key, unit := root, "throttled_usec", int64(1000)
		if controllers != "" {
			if !strings.Contains(","+controllers+",", ",cpu,") {
				continue
			}
			base, key, unit = path.Join(root, controllers), "throttled_time", 1
		}
		for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
			found = append(found, throttle{path.Join(base, dir, "cpu.stat"), key, unit})
			if dir == "/" {
				break
			}
		}
	}
	return found
}

// throttle is the file of one control group that tells how long its limit held CPUs back.
type throttle struct {
	path string
	key  string
	unit int64 // nanoseconds
}

// withheld is what this machine and its control groups kept back, since they began.
type withheld struct{ stolen, throttled int64 }
