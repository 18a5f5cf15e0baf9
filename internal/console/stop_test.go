package console

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
)

// TestSignals: the first signal ends the context, each of the first two is reported, the third ends the process.
func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		var said strings.Builder
		var codes []int
		p := &Process{Name: "bragg", Signals: signals, Stderr: &said, Exit: func(code int) { codes = append(codes, code) }}
		stop, end := p.WatchSignals(t.Context(), p.Saying("stopping"))
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
