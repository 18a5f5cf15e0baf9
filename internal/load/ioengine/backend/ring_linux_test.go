package backend

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A call that signals cut short is made again, not forever, and any other error is reported at once.
func TestUninterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		answers []syscall.Errno // the last one is given from then on
		want    error
		calls   int
	}{
		"done":               {[]syscall.Errno{0}, nil, 1},
		"interrupted":        {[]syscall.Errno{unix.EINTR, unix.EINTR, 0}, nil, 3},
		"then refused":       {[]syscall.Errno{unix.EINTR, unix.ENXIO}, unix.ENXIO, 2},
		"refused":            {[]syscall.Errno{unix.EBUSY, 0}, unix.EBUSY, 1},
		"always interrupted": {[]syscall.Errno{unix.EINTR}, unix.EINTR, 1 + interruptionsMax},
	} {
		calls := 0
		err := uninterrupted(func() syscall.Errno {
			calls++
			return c.answers[min(calls, len(c.answers))-1]
		})
		if !errors.Is(err, c.want) || calls != c.calls {
			t.Errorf("%s: %v after %d calls, want %v after %d", name, err, calls, c.want, c.calls)
		}
	}
}
