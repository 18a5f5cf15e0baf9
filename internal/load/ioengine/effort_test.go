//go:build linux

package ioengine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/testreq"
)

// behind runs a load of 3 s in a process of its own that another program starts, and returns its intervals.
func behind(t *testing.T, options string, program ...string) (all []interval.Interval, used time.Duration) {
	t.Helper()
	w := files(t, job(options+" time_based"))
	w.Runtime, w.IntervalLength = 3*time.Second, 500*time.Millisecond
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(program[0], append(program[1:], os.Args[0])...)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	all = intervals(t, &out)
	if len(all) < 5 {
		t.Fatalf("%d intervals", len(all))
	}
	return all, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// pinned runs a load on CPU 0, beside as many programs there that do nothing but burn it.
func pinned(t *testing.T, options string, burners int) []interval.Interval {
	t.Helper()
	taskset := testreq.Program(t, "taskset")
	for range burners {
		burn := exec.Command(taskset, "-c", "0", "sh", "-c", "while :; do :; done")
		if err := burn.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = burn.Process.Kill()
			_ = burn.Wait()
		}()
	}
	all, _ := behind(t, options, taskset, "-c", "0")
	return all
}

func efforts(all []interval.Interval) string {
	var text strings.Builder
	for i := range all {
		fmt.Fprintf(&text, "\n%d ns: %+v, stalled %d", all[i].LengthNanos, all[i].Effort, all[i].StalledNanos)
	}
	return text.String()
}

func countMarks(all []interval.Interval) (saturated, starved int) {
	for i := range all {
		if all[i].Saturated() {
			saturated++
		}
		if all[i].Starved() {
			starved++
		}
	}
	return saturated, starved
}

// A generator that must share its CPU with others waits for it, and every interval says so.
func TestStarvedGeneratorIsMarked(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for _, options := range []string{"rw=randread bs=4k size=16m ioengine=psync", "rw=randread bs=4k size=16m ioengine=io_uring iodepth=4"} {
		all := pinned(t, options, 2)
		if _, starved := countMarks(all); starved < len(all)-1 {
			t.Errorf("%s: %d of %d intervals are marked: %+v", options, starved, len(all), all)
		}
	}
}

// A generator that burns a whole CPU by itself is the limit, and every interval says so. One that waits for its device or
// its rate is not.
func TestSaturatedGeneratorIsMarked(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	all := pinned(t, "rw=randread bs=4k size=16m ioengine=null", 0)
	saturated, starved := countMarks(all)
	if saturated < len(all)-3 && starved < len(all)/2 { // where the machine is busy with other things it is starved instead
		t.Errorf("%d of %d intervals are marked as saturated, %d as starved: %s", saturated, len(all), starved, efforts(all))
	}
	all = pinned(t, "rw=randread bs=4k size=16m ioengine=psync rate_iops=200", 0)
	if saturated, _ := countMarks(all); saturated > 0 {
		t.Errorf("a load of 200 operations a second is marked as saturated: %s", efforts(all))
	}
}

// The limit of a control group is found by its own counter, because a thread that it holds back is not waiting in the
// scheduler's eyes.
func TestThrottledGeneratorIsMarked(t *testing.T) {
	testreq.Root(t)
	group, limit := cpuGroup(t)
	if err := os.WriteFile(limit[0], []byte(limit[1]), 0); err != nil {
		t.Fatal(err)
	}
	all, used := behind(t, "rw=randread bs=4k size=16m ioengine=null", "sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group)
	explained := 0
	for i := range all {
		// On a busy machine it never comes to its fifth of a CPU, and waits for one with the others.
		if all[i].ThrottledNanos > 0 || all[i].WaitedNanos > all[i].LengthNanos/2 {
			explained++
		}
	}
	_, starved := countMarks(all)
	switch marked := explained >= len(all)-2 && starved >= len(all)-2; {
	case marked:
	case used < 300*time.Millisecond: // half of its quota: a machine that stands still throttles no process, and its clocks go on
		t.Logf("undecided: the generator got only %v of CPU in 3 s, of which its quota allows 600 ms: %s", used, efforts(all))
	default:
		t.Errorf("%d of %d intervals are throttled or waited, %d are marked: %s", explained, len(all), starved, efforts(all))
	}
}

// cpuGroup makes a control group of either version, and returns what to write where so that it has a fifth of a CPU.
func cpuGroup(t *testing.T) (group string, limit [2]string) {
	t.Helper()
	name := "bragg-test-" + strconv.Itoa(os.Getpid())
	for _, v := range []struct{ root, file, text string }{
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000"}, {"/sys/fs/cgroup", "cpu.max", "20000 100000"},
	} {
		made := filepath.Join(v.root, name)
		if os.Mkdir(made, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			if err := unix.Rmdir(made); err != nil {
				t.Errorf("remove control group: %v", err)
			}
		})
		if _, err := os.Stat(filepath.Join(made, v.file)); err == nil {
			return made, [2]string{filepath.Join(made, v.file), v.text}
		}
	}
	testreq.Skip(t, "no control group for CPU time can be made")
	return "", limit
}
