//go:build linux

package ioengine_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/testreq"
)

// settingsSeen reads what the thread that drives a lane runs with.
type settingsSeen struct {
	once sync.Once
	seen string
	fail error
}

func (s *settingsSeen) Begin(int64) {}

func (s *settingsSeen) Completed([]ioengine.Completed) {
	s.once.Do(func() {
		var set unix.CPUSet
		if s.fail = unix.SchedGetaffinity(0, &set); s.fail != nil {
			return
		}
		cpus := ""
		for cpu := range 64 {
			if set.IsSet(cpu) {
				cpus += fmt.Sprint(cpu, " ")
			}
		}
		// getpriority(2) of the kernel is 20 less nice, so that it is never negative.
		priority, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
		io, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, 1, 0, 0)
		if s.fail = err; err == nil && errno != 0 {
			s.fail = errno
		}
		s.seen = fmt.Sprintf("cpus %snice %d class %d prio %d", cpus, 20-priority, io>>13, io&0x1fff)
	})
}

// Threads run where and as the job says, and no thread keeps that for others.
func TestThreadSettings(t *testing.T) {
	testreq.Root(t)
	if testing.Short() {
		t.Skip("long")
	}
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil || !all.IsSet(0) || !all.IsSet(1) {
		testreq.Skip(t, "CPUs 0 and 1 are not both there")
	}
	base, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // tests may run under nice(1)
	if err != nil {
		t.Fatal(err)
	}
	nice := fmt.Sprint("nice ", 20-base)
	for _, c := range []struct{ options, want string }{
		{"cpus_allowed=1", "cpus 1 " + nice + " class 0 prio 0"},
		{"cpumask=1", "cpus 0 " + nice + " class 0 prio 0"},
		{"cpus_allowed=0-1 cpus_allowed_policy=split numjobs=2", "cpus 0 " + nice + " class 0 prio 0"},
		{"cpus_allowed=0-1", "cpus 0 1 " + nice + " class 0 prio 0"},
		{"nice=5", "nice 5 class 0 prio 0"},
		{"prio=3", nice + " class 2 prio 3"},
		{"prioclass=3", nice + " class 3 prio 0"},
	} {
		for _, engine := range []string{"io_uring", "psync", "null"} {
			w := files(t, job("rw=randread bs=4k size=1m iodepth=4 ioengine="+engine+" "+c.options))
			parsed, list := fiojob.Parse(w.ConfigName, w.Config, fiojob.Options{})
			if list.HasErrors() {
				t.Fatal(list)
			}
			run, err := ioengine.New().PrepareJobs(t.Context(), w, parsed.Jobs())
			if err != nil {
				t.Fatal(err)
			}
			var seen settingsSeen
			run.Observe(func(_ string, clone int) ioengine.Observer {
				if clone > 0 {
					return nil
				}
				return &seen
			})
			if err := run.Run(t.Context(), load.SinkFunc(func(interval.Interval) {})); err != nil {
				t.Fatal(err)
			}
			if seen.fail != nil || len(seen.seen) < len(c.want) || seen.seen[len(seen.seen)-len(c.want):] != c.want {
				t.Errorf("%s with %s: %q, %v, want %q", c.options, engine, seen.seen, seen.fail, c.want)
			}
		}
	}
	// Threads end a little after the goroutines that they were bound to.
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		kept := bound(t, &all)
		if len(kept) == 0 {
			break
		}
		if time.Now().After(until) {
			t.Errorf("threads %v keep the CPUs of a job", kept)
			break
		}
	}
	w := files(t, job("rw=read size=1m cpus_allowed=4000"))
	instance, err := ioengine.New().Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if err := instance.Run(t.Context(), load.SinkFunc(func(interval.Interval) {})); err == nil {
		t.Error("a CPU that is not there is no error")
	}
}

// bound lists threads of this process that may not run on all CPUs.
func bound(t *testing.T, all *unix.CPUSet) (threads []string) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		var id int
		if _, err := fmt.Sscan(task.Name(), &id); err != nil {
			t.Fatal(err)
		}
		if id == os.Getpid() {
			continue // the first thread cannot end: the runtime lets it sleep forever
		}
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(id, &set); err == nil && set != *all {
			threads = append(threads, task.Name())
		}
	}
	return threads
}

// Operations between pauses, and the time that pauses take, bound what can be done; the processor's time tells computing
// from sleeping.
func TestThinkingTime(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const length = time.Second
	for _, c := range []struct {
		options string
		most    uint64
		spins   time.Duration // processor time at least
	}{
		{"thinktime=20ms thinktime_blocks=5", 5 * 51, 0},
		{"thinktime=20ms thinktime_blocks=5 thinktime_blocks_type=issue iodepth=3", 5 * 51, 0},
		{"thinktime=20ms thinktime_spin=15ms thinktime_blocks=5", 5 * 51, 150 * time.Millisecond},
		{"thinktime=400ms thinktime_iotime=100ms rate_iops=1000", 1001, 0},
	} {
		w := job("rw=read bs=4k size=64m time_based ioengine=null " + c.options)
		w.Runtime = length
		parsed, list := fiojob.Parse(w.ConfigName, w.Config, fiojob.Options{})
		if list.HasErrors() {
			t.Fatal(list)
		}
		jobs := parsed.Jobs()
		for i := range jobs {
			jobs[i] = jobs[i].WithRuntime(length)
		}
		run, err := ioengine.New().PrepareJobs(t.Context(), w, jobs)
		if err != nil {
			t.Fatal(err)
		}
		var done uint64
		var lacked time.Duration // without a CPU
		if err := run.Run(t.Context(), load.SinkFunc(func(iv interval.Interval) {
			done += iv.Directions[0].Operations
			lacked += time.Duration(iv.Effort.LackedNanos())
		})); err != nil {
			t.Fatal(err)
		}
		account := run.Account()
		used := time.Duration(account.UserNanos + account.SystemNanos)
		t.Logf("%s: %d operations, %v of the processor", c.options, done, used)
		if used < c.spins && used+lacked >= c.spins {
			t.Logf("%s: undecided: it had no CPU for %v of the time in which it spins", c.options, lacked)
			used = c.spins // the operations still decide
		}
		if done == 0 || done > c.most || used < c.spins {
			t.Errorf("%s: %d operations, at most %d are possible; %v of the processor, at least %v", c.options, done, c.most, used, c.spins)
		}
	}
}
