package local

import (
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
)

// The mark of a process is seen as soon as its starter goes on, also on a busy machine.
func TestMarkIsSeenAtOnce(t *testing.T) {
	var done atomic.Bool
	defer done.Store(true)
	for range 2 * runtime.NumCPU() {
		go func() {
			for !done.Load() {
				runtime.Gosched()
			}
		}()
	}
	for i := range 400 {
		c := exec.Command("/bin/sleep", "10")
		c.Env = append(os.Environ(), markVariable+"this one")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		mark, marked := markOf(c.Process.Pid)
		_ = c.Process.Kill()
		_ = c.Wait()
		if !marked || mark != "this one" {
			t.Fatalf("process %d: mark %q, %t", i, mark, marked)
		}
	}
}
