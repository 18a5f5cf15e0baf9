package console

import (
	"context"
	"os"
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
