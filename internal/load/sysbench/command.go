package sysbench

import (
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/load/program"
)

const (
	// timeForever ends by a signal.
	timeForever = 10 * 365 * 24 * time.Hour
	// overdue is how long an event may take beyond the time of a load.
	overdue = time.Minute
)

// command is one run of sysbench. A load always has a time, because only then it prints its totals when it is ended early.
func (c *config) command(verb string, runtime time.Duration, seed uint64) program.Command {
	args := []string{c.test.name}
	if verb == "run" {
		if runtime <= 0 {
			runtime = timeForever
		}
		args = append(args, "--threads="+strconv.Itoa(c.threads), "--time="+seconds(runtime), "--events=0", "--report-interval=1",
			"--histogram=on", "--percentile="+strconv.Itoa(c.percentile), "--forced-shutdown="+seconds(overdue),
			"--rand-seed="+strconv.FormatUint(1+seed%(1<<31-2), 10))
	}
	for _, v := range c.values {
		args = append(args, "--"+v.name+"="+v.text)
	}
	return program.Command{Path: Name, Args: append(args, verb)}
}

// seconds rounds up: sysbench has no fractions.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
