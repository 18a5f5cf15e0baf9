package vioperf

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// test is one test that runs, as its table shows it.
type test struct {
	in       *instance
	kind     int
	duration time.Duration
	began    time.Time
	took     time.Duration // valid after its end
	done     int64         // operations
	recent   []reading     // of the last rowEvery, the oldest first
	busy     [3]uint64     // CPU ticks of the machine at the begin
}

// reading is how many operations had ended at a time.
type reading struct {
	at   time.Time
	done int64
}

// rowEvery is the time between two rows of a test.
const rowEvery = 10 * time.Second

func newTest(in *instance, kind int, duration time.Duration) *test {
	now := time.Now()
	return &test{in: in, kind: kind, duration: duration, began: now, recent: []reading{{at: now}}, busy: cpuTicks()}
}

func (t *test) add(o program.Operation) {
	if o.Failed == "" {
		t.done++
	}
}

// look writes a row when it is time for one.
func (t *test) look() {
	if now := time.Now(); now.Sub(t.recent[0].at) >= rowEvery {
		t.row(now)
		t.recent = []reading{{now, t.done}}
	}
}

// end writes the last row.
func (t *test) end() {
	now := time.Now()
	t.took = now.Sub(t.began)
	t.row(now)
}

// rate is what the test counts per second: MB of 10⁶ bytes, or seeks.
func (t *test) rate(done int64, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	rate := float64(done) / took.Seconds()
	if t.kind == skipRead {
		return rate
	}
	return rate * float64(t.in.config.buffer) / 1e6
}

// results notes the results of the test that ended. CRC time is the share of the threads' time over the tests so far.
func (t *test) results(values interval.GaugeValues) {
	if values[t.kind] = t.rate(t.done, t.took); t.kind != gaugeSeeks {
		values[t.kind] /= float64(t.in.cores)
	}
	values[gaugeCRC] = t.crcShare(t.took)
}

func (t *test) crcShare(took time.Duration) float64 {
	var sum time.Duration
	for _, w := range t.in.workers {
		sum += w.summed
	}
	return 100 * sum.Seconds() / (took.Seconds() * float64(len(t.in.workers)))
}

var counters = [testCount]string{"MB/s", "(MB-read+MB-write)/s", "MB/s", "seeks/s"}

// describe writes what the table is about, and its head.
func (in *instance) describe() {
	c := in.config
	e := in.Engine()
	fmt.Fprintf(in.said, "The four tests of vioperf, as Bragg implements them: %s I/O, CRC %s, buffers of %s, files of at most %s together.\n",
		e.Backends[0], onOff(c.crc), unit.FormatBytes(c.buffer), unit.FormatBytes(c.data))
	fmt.Fprintf(in.said, "%d threads, %d cores. MB are 10⁶ bytes. A skip read leaves out %d buffers.\n\n", c.threads, in.cores, skipped)
	fmt.Fprintln(in.said, strings.Join([]string{"test", "directory", "counter name", "counter value", "counter value (10 sec avg)", "counter value/core",
		"counter value/core (10 sec avg)", "thread count", "%CPU", "%IO Wait", "elapsed time (s)", "remaining time (s)"}, " | "))
}

// row writes one row in the columns of the field.
func (t *test) row(now time.Time) {
	cores, elapsed := float64(t.in.cores), now.Sub(t.began)
	whole, last := t.rate(t.done, elapsed), t.rate(t.done-t.recent[0].done, now.Sub(t.recent[0].at))
	value := func(v float64) string {
		text := fmt.Sprintf("%.4g", v)
		if t.kind == rewrite {
			text += "+" + text
		}
		return text
	}
	ticks := cpuTicks()
	share := func(i int) string {
		total := float64(ticks[2] - t.busy[2])
		if total <= 0 {
			return "-"
		}
		return fmt.Sprintf("%.0f", 100*float64(ticks[i]-t.busy[i])/total)
	}
	name := [testCount]string{"Write", "ReWrite", "Read", "SkipRead"}[t.kind]
	fmt.Fprintln(t.in.said, strings.Join([]string{name, t.in.config.disk, counters[t.kind], value(whole), value(last), value(whole / cores), value(last / cores),
		fmt.Sprint(t.in.config.threads), share(0), share(1), fmt.Sprintf("%.1f", elapsed.Seconds()), fmt.Sprintf("%.1f", max(0, t.duration-elapsed).Seconds())}, " | "))
}

// cpuTicks returns the busy, waiting and total ticks of all CPUs of this machine.
func cpuTicks() (ticks [3]uint64) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return ticks
	}
	defer f.Close()
	line, _ := bufio.NewReader(f).ReadString('\n')
	var user, nice, system, idle, waiting, irq, soft uint64
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &waiting, &irq, &soft); err != nil {
		return ticks
	}
	busy := user + nice + system + irq + soft
	return [3]uint64{busy, waiting, busy + waiting + idle}
}
