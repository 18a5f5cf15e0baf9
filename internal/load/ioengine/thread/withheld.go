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

// Withheld is the CPU time in nanoseconds, summed over all CPUs, that this machine and its control groups kept back and that
// programs used, since they began.
type Withheld struct{ Stolen, Throttled, Used int64 }

// From returns how long at most a thread that used so much CPU time since before was kept from a CPU by the hypervisor, and how
// long by control groups. Both are counted of all CPUs together: what was stolen hit threads in proportion to the time they
// used, and a limit holds every CPU back.
func (w Withheld) From(before Withheld, used int64, cpus int) (stolen, throttled int64) {
	stolen = w.Stolen - before.Stolen
	if all := w.Used - before.Used; used < all {
		stolen = int64(float64(stolen) * float64(used) / float64(all))
	}
	return stolen, (w.Throttled - before.Throttled) / int64(max(1, cpus))
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
