package iohosts

import (
	"context"
	"io"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/sshlink/rpc"
)

// far is the host's half under test: a connection to it, and its exit code.
type far struct {
	session *session
	in      *io.PipeWriter
	muted   atomic.Bool // nothing of the controller arrives any more
	code    chan int
}

// Write is the way to the host.
func (f *far) Write(p []byte) (int, error) {
	if f.muted.Load() {
		return len(p), nil
	}
	return f.in.Write(p)
}

// serve starts the host's half.
func serve(t *testing.T, arguments ...string) *far {
	t.Helper()
	fromController, in := io.Pipe()
	out, toController := io.Pipe()
	f := &far{in: in, code: make(chan int, 4)}
	go func() {
		code := Serve(context.Background(), Program{
			Arguments: arguments, Version: "v", Executable: "/nowhere/bragg", In: fromController, Out: toController, Errors: io.Discard,
			Exit: func(code int) { f.code <- code },
		})
		_ = toController.Close()
		_ = fromController.Close()
		f.code <- code
	}()
	client, err := rpc.New(struct {
		io.Reader
		io.Writer
		io.Closer
	}{out, f, in}, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	f.session = &session{client: client}
	return f
}

// dropTimers empties the multiplexer's pool of timers: those of a bubble must not be used outside of it, nor others in it.
func dropTimers() {
	runtime.GC()
	runtime.GC()
}

// A host whose controller is silent for too long ends; one that hears it stays.
func TestSilenceEndsTheHost(t *testing.T) {
	dropTimers()
	defer dropTimers()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		f := serve(t)
		for range 10 {
			if h, err := f.session.greet(t.Context(), 1); err != nil || h.Version != "v" || h.UptimeNanos < int64(time.Since(begun))-int64(time.Second) {
				t.Fatalf("said %+v, %v", h, err)
			}
			time.Sleep(silenceMax / 2)
		}
		f.muted.Store(true)
		<-f.code
		if took := time.Since(begun); took < 6*silenceMax-time.Second || took > 7*silenceMax {
			t.Errorf("it ended after %v", took)
		}
		_ = f.in.Close()
		f.session.hangUp()
		synctest.Wait()
		time.Sleep(leaveMax) // the last resort is due and finds no process
	})
}

// A host that receives invalid messages runs nothing, and reports that or ends.
func TestHostBearsNonsense(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		jobs Jobs
		want int
	}{
		"bad text":  {Jobs{Inputs: []fiojob.Input{{Name: "f", Text: "rw=read\n"}}}, diag.ExitData},
		"no engine": {Jobs{Inputs: []fiojob.Input{{Name: "f", Text: "[a]\nsize=1m\nioengine=rbd\ndirectory=" + dir}}}, diag.ExitData},
		"no size":   {Jobs{Inputs: []fiojob.Input{{Name: "f", Text: "[a]\ndirectory=" + dir}}}, diag.ExitData},
		"backend":   {Jobs{Inputs: []fiojob.Input{{Name: "f", Text: "[a]\nsize=1m\ndirectory=" + dir}}, Backend: "tape"}, diag.ExitUsage},
	} {
		f := serve(t)
		var fault error
		err := f.session.begin(t.Context(), &order{Jobs: c.jobs})
		if err == nil {
			err = f.session.follow(func(m *message) {
				if m.Fault != nil {
					fault = m.Fault.Err()
				}
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		if <-f.code; diag.ExitCode(fault) != c.want {
			t.Errorf("%s: exit code %d of %v, want %d", name, diag.ExitCode(fault), fault, c.want)
		}
		f.session.hangUp()
		if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
			t.Errorf("%s: left %q, %v", name, left, err)
		}
	}
	f := serve(t)
	if _, err := f.session.greet(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f.in, "not a message\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-f.code; got != diag.ExitInterrupted {
		t.Errorf("after nonsense: exit code %d", got)
	}
	f.session.hangUp()
}
