package agent

import (
	"os"
	"strconv"
	"strings"
)

// kernel is what node_uname_info tells.
type kernel struct{ name, release, version, machine string }

// residentBytes returns how much memory this process holds, 0 where the system does not tell.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
