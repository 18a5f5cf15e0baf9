package iohosts

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/textio"
)

// controllerOf starts the host's half, and returns the controller's ends of its streams.
func controllerOf(t *testing.T, arguments ...string) (in *io.PipeWriter, said <-chan *message, code <-chan int) {
	t.Helper()
	fromController, in := io.Pipe()
	out, toController := io.Pipe()
	messages, exit := make(chan *message, 1000), make(chan int, 4)
	go func() {
		code := Serve(context.Background(), Program{
			Arguments: arguments, Version: "v", Executable: "/nowhere/bragg", In: fromController, Out: toController, Errors: io.Discard,
			Exit: func(code int) { exit <- code },
		})
		_ = toController.Close()
		_ = fromController.Close()
		exit <- code
	}()
	go func() {
		defer close(messages)
		lines := textio.NewLineReader(out, lineBytesMax)
		for {
			m, err := next(lines)
			if err != nil {
				return
			}
			messages <- m
		}
	}()
	return in, messages, exit
}

// A host whose controller is silent for too long ends; one that hears it stays.
func TestSilenceEndsTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		in, said, code := controllerOf(t)
		if m := <-said; m.Hello == nil || m.Hello.Version != "v" {
			t.Fatalf("said %+v", m)
		}
		to := writer{to: in}
		for n := range int64(10) {
			time.Sleep(silenceMax / 2)
			if err := to.send(&message{Ping: &n}); err != nil {
				t.Fatal(err)
			}
			if m := <-said; m.Pong == nil || m.Pong.Ping != n || m.Pong.MonoNanos < int64(time.Since(begun))-int64(time.Second) {
				t.Fatalf("said %+v", m)
			}
		}
		<-code
		if took := time.Since(begun); took < 6*silenceMax-time.Second || took > 7*silenceMax {
			t.Errorf("it ended after %v", took)
		}
		_ = in.Close()
		for range said {
		}
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
		in, said, code := controllerOf(t)
		if err := (&writer{to: in}).send(&message{Jobs: &order{Jobs: c.jobs}}); err != nil {
			t.Fatal(err)
		}
		var fault error
		for m := range said {
			if m.Fault != nil {
				fault = m.Fault.Err()
			}
			if m.End != nil {
				_ = in.Close()
			}
		}
		if <-code; diag.ExitCode(fault) != c.want {
			t.Errorf("%s: exit code %d of %v, want %d", name, diag.ExitCode(fault), fault, c.want)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
			t.Errorf("%s: left %q, %v", name, left, err)
		}
	}
	in, said, code := controllerOf(t)
	<-said
	if _, err := io.WriteString(in, "not a message\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != diag.ExitInterrupted {
		t.Errorf("after nonsense: exit code %d", got)
	}
}
