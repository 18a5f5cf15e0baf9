package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// hangGuard is given to test binaries as go test does it.
const hangGuard = "30m"

// outputGrace is how long after the end of a test binary its output is still read: processes that it left behind may hold it.
const outputGrace = 5 * time.Second

// runPackage runs a test binary and measures it. The output of a binary that fails goes to out.
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
	s := &shares{meters: m, costs: map[string]*testCost{}, of: p.ImportPath, since: began}
	c = packageCost{Package: p.ImportPath, Result: "ok"}
	if err := s.followTo(lines, func() {
		err = awaitExit(m.pid)
		c.cost = m.read()
		c.Wall = time.Since(began)
	}); err != nil {
		return c, errors.Join(err, command.Process.Kill(), command.Wait())
	}
	c.Tests = s.list()
	if command.Wait() != nil {
		c.Result = "FAIL"
		fmt.Fprint(out, s.output.String())
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

// statusLine is what a test binary prints with -test.v=test2json when a test changes its state: behind a control character, which also
// separates it from output without a line feed. Results of subtests are indented.
var statusLine = regexp.MustCompile(`\x16(?:=== (RUN|PAUSE|CONT) +|--- (PASS|FAIL|SKIP): )(\S+)(?: \(([0-9.]+)s\))?$`)

// shares gives what counters grow by to the tests that run at that time. Subtests count for their test. The first milliseconds of a test may
// count for the one before it: counters are read when the output of the test binary says that a test begins or ends.
type shares struct {
	meters  *meters
	of      string
	since   time.Time
	last    cost
	running []string
	costs   map[string]*testCost
	order   []string
	output  strings.Builder
}

// followTo reads the output of a test binary, until it ends, or for outputGrace after ended has returned. No other program is between them:
// the counters must be read soon after a test begins.
func (s *shares) followTo(lines io.ReadCloser, ended func()) error {
	var waiting sync.WaitGroup
	read := make(chan struct{})
	waiting.Go(func() {
		ended()
		select {
		case <-read:
		case <-time.After(outputGrace):
			_ = lines.Close()
		}
	})
	scan := bufio.NewScanner(lines)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		s.take(scan.Text())
	}
	close(read)
	waiting.Wait()
	if err := scan.Err(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

func (s *shares) take(line string) {
	s.output.WriteString(strings.ReplaceAll(line, "\x16", "") + "\n")
	m := statusLine.FindStringSubmatch(line)
	if m == nil || strings.Contains(m[3], "/") {
		return
	}
	name, state := m[3], m[1]+m[2]
	switch state {
	case "RUN":
		s.split()
		s.costs[name] = &testCost{Package: s.of, Test: name}
		s.order = append(s.order, name)
		s.running = append(s.running, name)
	case "CONT":
		s.split()
		s.running = append(s.running, name)
	case "PAUSE":
		s.split()
		s.running = without(s.running, name)
	default: // its own measure of its time has no delay
		s.split()
		s.running = without(s.running, name)
		if seconds, err := strconv.ParseFloat(m[4], 64); err == nil && s.costs[name] != nil {
			s.costs[name].Wall = time.Duration(seconds * float64(time.Second))
		}
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
