package sysbench

import (
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

const (
	// timeForever ends by a signal.
	timeForever = 10 * 365 * 24 * time.Hour
	// overdue is how long an event may take beyond the time of a load.
	overdue = time.Minute
)

// command is one run of sysbench. A load always has a time, because only then it prints its totals when it is ended early.
func (c *config) command(verb string, w *load.Workload, more ...string) program.Command {
	args := append([]string{c.test.name}, more...)
	if verb == "run" {
		runtime, seed := w.Runtime, w.Seed
		if runtime <= 0 {
			runtime = timeForever
		}
		args = append(args, "--threads="+strconv.Itoa(c.threads), "--time="+seconds(runtime), "--events=0", "--report-interval=1",
			"--histogram=on", "--percentile="+strconv.Itoa(c.percentile), "--forced-shutdown="+seconds(overdue),
			"--rand-seed="+strconv.FormatUint(1+seed%(1<<31-2), 10))
	}
	if d := c.database; d != nil && verb == "run" && d.rate > 0 {
		args = append(args, "--rate="+strconv.Itoa(d.rate))
	} else if d != nil && verb == "prepare" {
		args = append(args, "--threads="+strconv.Itoa(min(c.threads, d.tables))) // each makes tables of its own
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
