package thread

import (
	"path"
	"strings"
)

// throttle is the file of one control group that tells how long its limit held CPUs back.
type throttle struct {
	path string
	key  string
	unit int64 // nanoseconds
}

// Withheld is what this machine and its control groups kept back, since they began.
type Withheld struct{ Stolen, Throttled int64 }

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
