package fiolog

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceUnix returns how many nanoseconds a clock of clock_gettime(2) is ahead of wall time; an unknown clock counts as wall
// time, as in fio.
func sinceUnix(clock int) int64 {
	var now unix.Timespec
	if clock == 0 || unix.ClockGettime(int32(clock), &now) != nil {
		return 0
	}
	return now.Nano() - time.Now().UnixNano()
}
