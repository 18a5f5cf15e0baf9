package ioengine_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// chainGuard bounds waits of these tests, so that a program that froze is an error and not a test that never ends.
const chainGuard = 2 * time.Minute

// watched is a load in a process of its own, whose intervals can be read while it runs.
type watched struct {
	*exec.Cmd
	intervals chan interval.Interval
	messages  chan string // the whole text, once the process has closed its standard error
}

func watchLoad(t *testing.T, w load.Workload, env ...string) *watched {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(append(os.Environ(), childVariable+"="+string(text)), env...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	messages, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	l := &watched{Cmd: c, intervals: make(chan interval.Interval, 10_000), messages: make(chan string, 10_000)}
	go func() {
		defer close(l.intervals)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var iv interval.Interval
			if json.Unmarshal(lines.Bytes(), &iv) == nil {
				l.intervals <- iv
			}
		}
	}()
	go func() {
		defer close(l.messages)
		for lines := bufio.NewScanner(messages); lines.Scan(); {
			l.messages <- lines.Text()
		}
	}()
	return l
}

// next returns the next interval.
func (l *watched) next(t *testing.T) interval.Interval {
	t.Helper()
	select {
	case iv, ok := <-l.intervals:
		if !ok {
			t.Fatal("the load ended")
		}
		return iv
	case <-time.After(chainGuard):
		t.Fatal("no interval: the program froze")
	}
	return interval.Interval{}
}

// hears waits for a message.
func (l *watched) hears(t *testing.T, text string) string {
	t.Helper()
	guard := time.After(chainGuard)
	for {
		select {
		case line, ok := <-l.messages:
			if !ok {
				t.Fatalf("no message says %q", text)
			}
			if strings.Contains(line, text) {
				return line
			}
		case <-guard:
			t.Fatalf("no message says %q: the program froze", text)
		}
	}
}

func operationsIn(iv interval.Interval) (sum uint64) {
	for d := range iv.Directions {
		sum += iv.Directions[d].Operations
	}
	return sum
}

// Storage that hangs while operations are chained: intervals go on, the garbage collector, which has to stop all threads,
// runs at each of them, and an interrupt ends the load with an error that says what hangs.
func TestHangingStorageFreezesNothing(t *testing.T) {
	dir := freezable(t)
	path := filepath.Join(dir, "disk")
	if err := os.WriteFile(path, make([]byte, 8*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, options := range []string{"rw=randwrite ioengine=psync", "rw=randrw ioengine=pvsync2", "rw=write ioengine=psync fsync=8"} {
		w := job("bs=4k size=8m time_based " + options)
		w.Runtime, w.IntervalLength = time.Hour, 100*time.Millisecond
		w.Devices = []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: 8 * mib}}
		l := watchLoad(t, w, "BRAGG_TEST_COLLECT=1")
		for operationsIn(l.next(t)) == 0 {
		}
		command(t, "fsfreeze", "--freeze", dir)
		thawed := false
		thaw := func() {
			if !thawed {
				thawed = true
				command(t, "fsfreeze", "--unfreeze", dir)
			}
		}
		t.Cleanup(thaw)
		for silent := 0; silent < 5; {
			iv := l.next(t)
			if operationsIn(iv) > 0 {
				continue
			}
			if silent++; iv.InFlight != 1 {
				t.Errorf("%s: %d operations in flight, want the one that hangs", options, iv.InFlight)
			}
		}
		if err := l.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if line := l.hears(t, "hang"); !strings.Contains(line, " 1 operations hang") {
			t.Errorf("%s: %s", options, line)
		}
		thaw()
		if err := l.Wait(); err == nil {
			t.Errorf("%s: the load ended well", options)
		}
	}
}

// What a chain does is what single operations do: the same offsets, as many as size asks for, each with a latency of its own
// and one in flight at a time.
func TestChainsCountAsSingleOperations(t *testing.T) {
	for _, options := range []string{
		"rw=randread bs=4k size=16m ioengine=psync", "rw=randrw bs=4k size=16m ioengine=psync", "rw=write bssplit=4k/50:8k/50 size=16m ioengine=pvsync2 fsync=3 end_fsync=1",
	} {
		w := files(t, job(options))
		planned := operations(t, w, 1<<20)
		run := prepared(t, w)
		seen := &inOrder{t: t, want: planned}
		run.Observe(func(string, int) ioengine.Observer { return seen })
		var log loadtest.Log
		if err := run.Run(t.Context(), &log); err != nil {
			t.Fatal(err)
		}
		loadtest.CheckIntervals(t, w, log.Intervals())
		if len(seen.want) > 0 {
			t.Errorf("%s: %d of %d operations were not done", options, len(seen.want), len(planned))
		}
		account := run.Account()
		if account.Depth != [7]uint64{0: account.Depth[0]} || account.Depth[0] < uint64(len(planned)) {
			t.Errorf("%s: depths %v of %d operations", options, account.Depth, len(planned))
		}
	}
}

// inOrder checks that operations are those of a plan, one after the other.
type inOrder struct {
	t    *testing.T
	want []ioengine.Operation
	last int64
}

func (o *inOrder) Begin(int64) {}

func (o *inOrder) Completed(batch []ioengine.Completed) {
	for i := range batch {
		c := &batch[i]
		if !c.OK() || c.Submitted < o.last || c.Completed < c.Submitted || !c.Sync && c.Intended != c.Submitted {
			o.t.Errorf("submitted at %d, completed at %d, behind one that completed at %d", c.Submitted, c.Completed, o.last)
		}
		o.last = c.Completed
		if c.Sync {
			continue
		}
		if len(o.want) == 0 || o.want[0].Offset != c.Offset || o.want[0].Size != c.Size || o.want[0].Direction != c.Direction {
			o.t.Errorf("%d bytes at %d are not what is next of the plan", c.Size, c.Offset)
			return
		}
		o.want = o.want[1:]
	}
}
