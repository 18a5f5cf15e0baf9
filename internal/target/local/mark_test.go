package local

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// The mark of a process is seen as soon as its starter goes on, also on a busy machine.
func TestMarkIsSeenAtOnce(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	for range 2 * runtime.NumCPU() {
		go func() {
			for {
				select {
				case <-done:
					return
				default:
				}
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
