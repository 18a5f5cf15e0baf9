package sshlink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/testreq"
)

// programName is that of this test alone, among all that may run at the same time.
var programName = fmt.Sprint("bragg-test-", os.Getpid())

// reached starts the test's program on a host with a server of ssh of its own.
func reached(t *testing.T) (*testreq.SSH, *Link) {
	t.Helper()
	server := testreq.SSHD(t, 1)
	h, err := ParseHost(server.Hosts()[0])
	if err != nil {
		t.Fatal(err)
	}
	r := ownProgram(t)
	r.Program, r.Options = programName, server.Options
	l, err := Start(t.Context(), h, r)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := l.out.Next(); err != nil || string(line) != "at your service" {
		t.Fatalf("%q, %v", line, err)
	}
	return server, l
}

// tooLong guards against hanging.
const tooLong = 5 * time.Minute

func within(t *testing.T, what string, done func() bool) {
	t.Helper()
	for until := time.Now().Add(tooLong); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal(what)
		}
	}
}

// Hanging up does not wait for the host: one that has lost power never answers.
func TestHangUpOnSilentHost(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a server of ssh")
	}
	server, l := reached(t)
	for _, id := range server.Sessions(0) {
		if err := syscall.Kill(id, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan struct{})
	go func() {
		l.HangUp(24 * time.Hour)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(tooLong):
		t.Error("ssh waits for a host that says nothing")
		l.Kill()
		<-ended
	}
	l.HangUp(time.Hour) // once more does no harm
	for _, id := range server.Sessions(0) {
		_ = syscall.Kill(id, syscall.SIGCONT)
	}
}

// After hanging up nothing of the connection is left on a host that still runs.
func TestHangUpLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a server of ssh")
	}
	server, l := reached(t)
	if len(server.Sessions(0)) == 0 {
		t.Error("no session is there")
	}
	l.HangUp(HangUpMax)
	within(t, "sessions are left", func() bool { return len(server.Sessions(0)) == 0 })
	left, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if strings.HasPrefix(e.Name(), programName+".") {
			t.Errorf("left %s", e.Name())
		}
	}
}

// A caller who gives up while a host is silent gets its own reason, not one of the host's.
func TestStartIsGivenUp(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	testreq.Program(t, "ssh")
	why := errors.New("the user pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		conn, err := l.Accept()
		cancel(why)
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	_, err = Start(ctx, Host{Name: "silent", Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}, ownProgram(t))
	if !errors.Is(err, why) || !strings.Contains(err.Error(), `"silent"`) {
		t.Errorf("got %v", err)
	}
}
