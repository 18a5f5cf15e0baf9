package thread

import (
	"runtime"
	"testing"
	"time"
)

// TestUnfinishedWait: a wait is reported lap by lap while it lasts, and not once more when the kernel counts it.
func TestUnfinishedWait(t *testing.T) {
	var u unfinishedWait
	for i, lap := range []struct {
		counted, length int64
		waiting         bool
		want            int64
	}{
		{30, 100, false, 30},  // ordinary
		{0, 100, false, 0},    // asleep
		{0, 100, true, 100},   // waits,
		{0, 100, true, 100},   // still,
		{240, 100, false, 40}, // and ended after 240
		{50, 100, false, 50},
		{0, 100, true, 100},
		{90, 100, false, 0}, // it had begun within the lap before
		{10, 100, false, 10},
	} {
		if got := u.lap(lap.counted, lap.length, lap.waiting); got != lap.want {
			t.Errorf("lap %d: %d, want %d", i, got, lap.want)
		}
	}
}

// TestSleepersDoNotWait: a thread that sleeps uses no CPU time either, and does not wait for a CPU.
func TestSleepersDoNotWait(t *testing.T) {
	clock, begun, end := make(chan *Clock), make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread() // it ends with the goroutine
		c := NewClock()
		clock <- &c
		close(begun)
		Pause(int64(time.Second))
		<-end
	}()
	c := <-clock
	<-begun
	time.Sleep(200 * time.Millisecond)
	c.Lap()
	time.Sleep(200 * time.Millisecond)
	if _, waited := c.Lap(); waited > int64(150*time.Millisecond) {
		t.Errorf("a sleeping thread waited for %v", time.Duration(waited))
	}
	if !(&runQueue{id: ID()}).ready() {
		t.Error("the running thread is not ready to run")
	}
	close(end)
}
