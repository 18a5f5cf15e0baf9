package command_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/command"
)

// Ctrl-C ends down in order: it says so, and waits no longer for another program that makes or removes labs.
func TestDownIsInterrupted(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	labs := filepath.Join(state, "bragg", "labs")
	if err := os.MkdirAll(labs, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(labs, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGINT
	var stdout, stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- command.Main(t.Context(), console.Process{
			Arguments: []string{"down"}, Getenv: func(key string) string { return map[string]string{"XDG_STATE_HOME": state}[key] },
			Directory: state, Executable: "/nowhere", Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
			Signals: signals, Exit: func(code int) { t.Errorf("the process was ended with exit code %d", code) },
		})
	}()
	select {
	case got := <-code:
		if got != diag.ExitInterrupted || !strings.Contains(stderr.String(), "bragg-lab: stopping") || stdout.Len() > 0 {
			t.Errorf("exit code %d, said %q and %q", got, stdout.String(), stderr.String())
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on after a signal")
	}
}
