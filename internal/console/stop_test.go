package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestSignals: what counts as a stop. The first stop ends the context, each of the first two is reported, the third ends the process.
func TestSignals(t *testing.T) {
	const interrupt, terminate, hangup = syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP
	type at struct {
		after  time.Duration
		signal os.Signal
	}
	for name, c := range map[string]struct {
		signals []at
		stops   int // of which the third ends the process
	}{
		"timeout(1)":             {[]at{{0, terminate}, {0, terminate}}, 1},
		"timeout(1) -s INT":      {[]at{{0, interrupt}, {time.Millisecond, interrupt}}, 1},
		"terminated for minutes": {[]at{{0, terminate}, {time.Minute, terminate}, {time.Minute, terminate}, {time.Minute, terminate}}, 1},
		"closed terminal":        {[]at{{0, hangup}, {0, hangup}, {time.Minute, hangup}, {time.Minute, terminate}}, 1},
		"CI runner":              {[]at{{0, interrupt}, {7500 * time.Millisecond, terminate}, {2500 * time.Millisecond, terminate}}, 1},
		"impatient":              {[]at{{0, interrupt}, {time.Second, interrupt}, {time.Second, interrupt}, {900 * time.Millisecond, interrupt}}, 1},
		"Ctrl-C twice":           {[]at{{0, interrupt}, {RepeatAfter, interrupt}}, 2},
		"Ctrl-C after SIGTERM":   {[]at{{0, terminate}, {RepeatAfter, interrupt}, {0, interrupt}}, 2},
		"echo of the second":     {[]at{{0, interrupt}, {RepeatAfter, interrupt}, {time.Millisecond, interrupt}, {time.Hour, terminate}}, 2},
		"Ctrl-C three times":     {[]at{{0, interrupt}, {RepeatAfter, interrupt}, {RepeatAfter, interrupt}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal)
				var said strings.Builder
				var codes []int
				p := &Process{Name: "bragg", Signals: signals, Stderr: &said, Exit: func(code int) { codes = append(codes, code) }}
				ctx, unlisten := p.listen(t.Context())
				defer unlisten()
				stop, end := p.WatchSignals(ctx, p.Saying("stopping"))
				defer end()
				for _, s := range c.signals {
					time.Sleep(s.after)
					signals <- s.signal
					synctest.Wait()
					if !stop.Stopped() {
						t.Fatal("not stopped")
					}
				}
				if got, want := strings.Count(said.String(), "bragg: stopping\n"), min(c.stops, 2); got != want {
					t.Errorf("%d lines, want %d", got, want)
				}
				if want := []int{130}[:c.stops/3]; !slices.Equal(codes, want) {
					t.Errorf("exit codes %v, want %v", codes, want)
				}
			})
		})
	}
}

// TestOutputNobodyReads: a command that watches signals survives the end of the program that reads its output.
func TestOutputNobodyReads(t *testing.T) {
	const cleanedUp = 7
	if os.Getenv("BRAGG_TEST_OUTPUT") != "" {
		p := New("bragg")
		_, end := p.WatchSignals(t.Context(), func(int) {})
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the reader is gone
		_, err := p.Stdout.Write([]byte("progress\n"))
		if !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write: %v", err)
		}
		_ = p.PrintError(fmt.Errorf("metrics: %w", err)) // says nothing
		end()
		os.Exit(cleanedUp)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOutputNobodyReads$")
	cmd.Env = append(os.Environ(), "BRAGG_TEST_OUTPUT=closed")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = writer, &said
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	_ = reader.Close()
	_ = input.Close()
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != cleanedUp {
		t.Errorf("ended with %v", cmd.ProcessState)
	}
	if said.Len() > 0 {
		t.Errorf("it said %q", said.String())
	}
}

// TestUnwatchedSignals: the first ends the verb's context, and the process ends after a while. One that comes just before a verb watches
// counts as its first.
func TestUnwatchedSignals(t *testing.T) {
	for name, c := range map[string]struct {
		course func(p *Process, ctx context.Context, signals chan<- os.Signal)
		codes  []int
	}{
		"second":     {func(_ *Process, _ context.Context, signals chan<- os.Signal) { signals <- syscall.SIGINT }, nil},
		"after that": {func(*Process, context.Context, chan<- os.Signal) { time.Sleep(2 * interruptedFor) }, []int{130}},
		"verb ended": {func(*Process, context.Context, chan<- os.Signal) {}, nil},
		"just before": {func(p *Process, ctx context.Context, _ chan<- os.Signal) {
			stop, end := p.WatchSignals(ctx, p.Saying("stopping"))
			defer end()
			time.Sleep(2 * interruptedFor)
			if !stop.Stopped() {
				t.Error("watches as if there was no signal")
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal)
				var said strings.Builder
				var codes []int
				p := &Process{Name: "bragg", Signals: signals, Stderr: &said, Exit: func(code int) { codes = append(codes, code) }}
				ctx, end := p.listen(t.Context())
				signals <- syscall.SIGINT
				synctest.Wait()
				if ctx.Err() == nil {
					t.Error("the context goes on after a signal")
				}
				c.course(p, ctx, signals)
				synctest.Wait()
				end()
				time.Sleep(2 * interruptedFor)
				if !slices.Equal(codes, c.codes) {
					t.Errorf("exit codes %v, want %v", codes, c.codes)
				}
				if want := name == "just before"; strings.Contains(said.String(), "stopping") != want {
					t.Errorf("said %q", said.String())
				}
			})
		})
	}
}
