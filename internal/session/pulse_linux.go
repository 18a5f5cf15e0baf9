package session

import (
	"time"

	"golang.org/x/sys/unix"
)

// now looks at the clocks.
func now() pulse {
	p := pulse{running: time.Now()}
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) == nil && unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) == nil {
		p.asleep = time.Duration(boot.Nano() - mono.Nano())
	}
	return p
}
