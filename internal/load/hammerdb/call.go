package hammerdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/load/program"
)

// call is a started hammerdbcli.
type call struct {
	process *program.Process
	stdin   *os.File // a line on it starts the users of a run
	last    *program.Tail
	said    io.Writer
	listens bool // what it says is taken

	mu     sync.Mutex
	heard  []heard // lines that were not taken, of a call that listens
	part   []byte
	first  []string // lines
	output Output
	wrong  error
	isUp   chan struct{} // closed by readyLine
	isLost chan struct{} // closed when a user has failed
	up     bool
	lost   bool
	tested time.Time // when the test proper was over
}

// heard is a line and when it came.
type heard struct {
	line string
	at   time.Time
}

// take returns the lines that came since the last call.
func (c *call) take() []heard {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.heard
	c.heard = nil
	return list
}

const (
	lineBytesMax = 4096
	headLinesMax = 100
)

// Write receives the output. Lines of failed transactions are counted and not kept: there may be millions.
func (c *call) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.part = append(c.part, p...)
	for {
		i := bytes.IndexByte(c.part, '\n')
		if i < 0 {
			break
		}
		c.line(string(c.part[:i]))
		c.part = c.part[i+1:]
	}
	if len(c.part) > lineBytesMax {
		c.part = c.part[:lineBytesMax]
	}
	return len(p), nil
}

func (c *call) line(line string) {
	failed := c.output.FailedCalls
	if err := c.output.line(line); err != nil && c.wrong == nil {
		c.wrong = err
	}
	line = strings.Trim(line, "\r")
	if c.output.Failed > 0 && !c.lost {
		c.lost = true
		close(c.isLost)
	}
	if c.listens {
		c.heard = append(c.heard, heard{line, time.Now()})
	}
	if c.output.FailedCalls > failed && failed > errorsMax {
		return
	}
	if len(c.first) < headLinesMax {
		c.first = append(c.first, line)
	}
	c.last.Line(line)
	fmt.Fprintln(c.said, line)
	if line == readyLine && !c.up {
		c.up = true
		close(c.isUp)
	}
	if c.tested.IsZero() && strings.HasSuffix(line, testedLine) {
		c.tested = time.Now()
	}
}

// testedLine is printed by the monitor once the last minute is over, before it stops the users.
const testedLine = ":Test complete, Taking end Transaction Count."

// testEnd is when the test proper was over, zero before. What follows is the work on its result, for seconds with many calls.
func (c *call) testEnd() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tested
}

func (c *call) head() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.first, "\n")
}

// verdict is whether the output of a call that has ended says that all went well.
func (c *call) verdict() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrong != nil {
		return c.wrong
	}
	err := c.output.Err()
	if exit := c.process.Wait(); exit != nil && errors.Is(err, errIncomplete) { // such as a crash
		return fmt.Errorf("%w: %w%s", err, exit, c.last.Quoted())
	}
	return err
}

// result is that of a test, nil without one, and how many transactions failed.
func (c *call) result() (r *Result, failed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output.Result, c.output.FailedCalls
}

// failedGrace is how long a call may take to end after one of its users has failed: the others may wait for that one forever.
const failedGrace = 10 * time.Second

// end waits for the end of a call, and kills it when ctx ends.
func (c *call) end(ctx context.Context) error {
	defer c.stdin.Close()
	select {
	case <-c.process.Done():
	case <-ctx.Done():
		c.process.Kill()
	case <-c.isLost:
		ctx, cancel := context.WithTimeout(ctx, failedGrace)
		defer cancel()
		select {
		case <-c.process.Done():
		case <-ctx.Done():
			c.process.Kill()
		}
	}
	return c.process.Wait()
}

// ready waits until the users of a run can start.
func (c *call) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyMax)
	defer cancel()
	select {
	case <-c.isUp:
		return nil
	case <-c.process.Done():
		return fmt.Errorf("HammerDB ended before its start: %w%s", orExit(c.process.Wait()), c.last.Quoted())
	case <-ctx.Done():
		return fmt.Errorf("wait for HammerDB: %w%s", context.Cause(ctx), c.last.Quoted())
	}
}

var errEndedByItself = errors.New("without an error")

func orExit(err error) error {
	if err == nil {
		return errEndedByItself
	}
	return err
}

func (c *call) kill() {
	if c != nil {
		c.process.Kill()
		_ = c.process.Wait()
		_ = c.stdin.Close()
	}
}
