package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/braggdev/bragg/internal/interval"
)

// effort tracks how much CPU time each thread of a program used and waited for. Only one goroutine uses it.
type effort struct {
	threads map[string][2]int64 // by id: used and waited, nanoseconds since its start
}

// lap returns the CPU time of the busiest thread and the longest run-queue wait of a thread since the previous lap. Threads
// that ended in between are not counted.
func (e *effort) lap(pid int) interval.Effort {
	folder := "/proc/" + strconv.Itoa(pid) + "/task"
	entries, err := os.ReadDir(folder)
	if err != nil {
		return interval.Effort{}
	}
	var worst interval.Effort
	now := make(map[string][2]int64, len(entries))
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name(), "schedstat"))
		var used, waited int64
		if err != nil {
			continue
		}
		if _, err := fmt.Sscan(string(text), &used, &waited); err != nil {
			continue
		}
		before := e.threads[entry.Name()]
		now[entry.Name()] = [2]int64{used, waited}
		worst.Join(interval.Effort{BusiestNanos: used - before[0], WaitedNanos: waited - before[1]})
	}
	e.threads = now
	return worst
}
