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

// TestSignals: the first signal ends the context, each of the first two is reported, the third ends the process.
func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		var said strings.Builder
		var codes []int
		p := &Process{Name: "bragg", Signals: signals, Stderr: &said, Exit: func(code int) { codes = append(codes, code) }}
		ctx, unlisten := p.listen(t.Context())
		defer unlisten()
		stop, end := p.WatchSignals(ctx, p.Saying("stopping"))
		defer end()
		for count := 1; count <= 3; count++ {
			signals <- syscall.SIGTERM
			synctest.Wait()
			if !stop.Stopped() {
				t.Fatalf("after signal %d: not stopped", count)
			}
			if got, want := strings.Count(said.String(), "bragg: stopping\n"), min(count, 2); got != want {
				t.Errorf("after signal %d: %d lines, want %d", count, got, want)
			}
			if want := []int{130}[:count/3]; !slices.Equal(codes, want) {
				t.Errorf("after signal %d: exit codes %v, want %v", count, codes, want)
			}
		}
	})
}

// TestHangup: a terminal that closes stops once, however many signals that sends; other signals count as always.
func TestHangup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		var said strings.Builder
		p := &Process{Name: "bragg", Signals: signals, Stderr: &said, Exit: func(code int) { t.Errorf("ends with %d", code) }}
		ctx, unlisten := p.listen(t.Context())
		defer unlisten()
		stop, end := p.WatchSignals(ctx, p.Saying("stopping"))
		defer end()
		for range 4 {
			signals <- syscall.SIGHUP
		}
		synctest.Wait()
		if got := strings.Count(said.String(), "stopping"); !stop.Stopped() || got != 1 {
			t.Errorf("stopped %v, %d times", stop.Stopped(), got)
		}
		signals <- syscall.SIGINT
		synctest.Wait()
		if got := strings.Count(said.String(), "stopping"); got != 2 {
			t.Errorf("an interrupt after a hangup: %d", got)
		}
	})
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

// TestUnwatchedSignals: the first ends the verb's context, and the process ends with the second or after a while. One
// that comes just before a verb watches counts as its first.
func TestUnwatchedSignals(t *testing.T) {
	for name, c := range map[string]struct {
		course func(p *Process, ctx context.Context, signals chan<- os.Signal)
		codes  []int
	}{
		"second":     {func(_ *Process, _ context.Context, signals chan<- os.Signal) { signals <- syscall.SIGINT }, []int{130}},
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
