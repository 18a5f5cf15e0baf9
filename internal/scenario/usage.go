package scenario

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTicks is how many ticks of /proc a second has; Linux fixes it for programs.
const clockTicks = 100

// usage returns the memory of a process, in bytes, and the CPU time that it has used.
func usage(pid int) (memory int64, processor time.Duration, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The second field is the name in brackets, which may hold anything; the third is the state.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 22 {
		return 0, 0, fmt.Errorf("read usage of process %d: %d fields", pid, len(fields))
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	return pages * int64(os.Getpagesize()), time.Duration(user+system) * time.Second / clockTicks, nil
}
