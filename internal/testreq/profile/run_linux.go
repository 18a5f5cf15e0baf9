package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// hangGuard is given to test binaries as go test does it.
const hangGuard = "30m"

// outputGrace is how long after the end of a test binary its output is still read: processes that it left behind may hold it.
const outputGrace = 5 * time.Second

// runPackage runs a test binary and measures it. The output of tests that fail goes to out.
func runPackage(ctx context.Context, out io.Writer, o options, p listedPackage, binary, group string, f *forks) (c packageCost, err error) {
	command := testCommand(ctx, o, p, binary)
	m := &meters{}
	if group != "" {
		m.group = filepath.Join(group, fmt.Sprintf("bragg-profile-%d", os.Getpid()))
		if err := os.Mkdir(m.group, 0o755); err != nil {
			return c, err
		}
		defer os.Remove(m.group) // fails while processes are left
		folder, err := os.Open(m.group)
		if err != nil {
			return c, err
		}
		defer folder.Close()
		command.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())}
	}
	lines, err := command.StdoutPipe()
	if err != nil {
		return c, err
	}
	if f != nil {
		f.prepare()
	}
	began := time.Now()
	if err := command.Start(); err != nil {
		return c, err
	}
	m.pid = command.Process.Pid
	if f != nil {
		f.follow(m.pid)
		m.forks = f.started
	} else {
		l := look(m.pid)
		defer l.close()
		m.forks = l.started
	}
	s := &shares{meters: m, out: out, costs: map[string]*testCost{}, of: p.ImportPath, since: began, output: map[string]string{}}
	c = packageCost{Package: p.ImportPath, Result: "ok"}
	if err := s.followTo(ctx, lines, func() {
		err = awaitExit(m.pid)
		c.cost = m.read()
		c.Wall = time.Since(began)
	}); err != nil {
		return c, errors.Join(err, command.Process.Kill(), command.Wait())
	}
	c.Tests = s.list()
	if command.Wait() != nil {
		c.Result = "FAIL"
	}
	if m.group != "" {
		c.Left = left(m.group)
	}
	return c, errors.Join(err, ctx.Err())
}

func testCommand(ctx context.Context, o options, p listedPackage, binary string) *exec.Cmd {
	command := exec.CommandContext(ctx, binary, "-test.v=test2json", "-test.paniconexit0", "-test.timeout="+hangGuard)
	if o.run != "" {
		command.Args = append(command.Args, "-test.run="+o.run)
	}
	if o.short {
		command.Args = append(command.Args, "-test.short")
	}
	command.Dir = p.Dir
	command.Stderr = os.Stderr
	return command
}

// awaitExit waits for the end of a process and leaves it as a zombie, whose counters are complete.
func awaitExit(pid int) error {
	const byPID, noReap = 1, syscall.WNOWAIT | syscall.WEXITED
	for {
		_, _, number := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid), 0, noReap, 0, 0)
		if number == 0 {
			return nil
		}
		if !errors.Is(number, syscall.EINTR) {
			return number
		}
	}
}

// event is one line of test2json.
type event struct {
	Action, Test, Output string
}

// shares gives what counters grow by to the tests that run at that time. Subtests count for their test. The first milliseconds of a test may
// count for the one before it: counters are read when the output of the test binary says that a test begins or ends.
type shares struct {
	meters  *meters
	out     io.Writer
	of      string
	since   time.Time
	last    cost
	running []string
	costs   map[string]*testCost
	order   []string
	output  map[string]string // of tests that have not ended
}

// followTo reads the output of a test binary, until it ends, or for outputGrace after ended has returned.
func (s *shares) followTo(ctx context.Context, lines io.Reader, ended func()) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	convert := exec.CommandContext(reading, "go", "tool", "test2json")
	convert.Stdin = lines
	pipe, err := convert.StdoutPipe()
	if err != nil {
		return err
	}
	if err := convert.Start(); err != nil {
		return err
	}
	var waiting sync.WaitGroup
	read := make(chan struct{})
	waiting.Go(func() {
		ended()
		select {
		case <-read:
		case <-time.After(outputGrace):
			stop()
		}
	})
	scan := bufio.NewScanner(pipe)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var e event
		if err := json.Unmarshal(scan.Bytes(), &e); err == nil {
			s.take(e)
		}
	}
	close(read)
	waiting.Wait()
	if err := convert.Wait(); err != nil && reading.Err() == nil {
		return errors.Join(err, scan.Err())
	}
	return ctx.Err()
}

func (s *shares) take(e event) {
	name, _, subtest := strings.Cut(e.Test, "/")
	s.output[name] += e.Output
	if name == "" || subtest {
		return
	}
	switch e.Action {
	case "run":
		s.split()
		s.costs[name] = &testCost{Package: s.of, Test: name}
		s.order = append(s.order, name)
		s.running = append(s.running, name)
	case "cont":
		s.split()
		s.running = append(s.running, name)
	case "pause", "pass", "fail", "skip":
		s.split()
		s.running = without(s.running, name)
	}
	if e.Action == "fail" {
		fmt.Fprint(s.out, s.output[name])
	}
	if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
		delete(s.output, name)
	}
}

// split gives the growth since the last change to the tests that ran.
func (s *shares) split() {
	now, counters := time.Now(), s.meters.read()
	n := len(s.running)
	for _, name := range s.running {
		c := s.costs[name]
		c.Shared = c.Shared || n > 1
		c.cost = c.plus(cost{Wall: now.Sub(s.since), CPU: (counters.CPU - s.last.CPU) / time.Duration(n), Starved: (counters.Starved - s.last.Starved) / time.Duration(n),
			Processes: (counters.Processes - s.last.Processes) / n, Written: (counters.Written - s.last.Written) / int64(n)})
	}
	s.since, s.last = now, counters
}

func without(list []string, name string) (rest []string) {
	for _, one := range list {
		if one != name {
			rest = append(rest, one)
		}
	}
	return rest
}

func (s *shares) list() (all []testCost) {
	for _, name := range s.order {
		all = append(all, *s.costs[name])
	}
	return all
}
