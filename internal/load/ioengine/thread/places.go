package thread

import (
	"runtime"
	"sync"
)

// A worker that comes back from the kernel needs one of the Go scheduler's GOMAXPROCS places to run on. Where other
// goroutines hold them all it waits, up to 10 ms, and that wait would be taken for latency of the device. So every
// worker that runs adds a place; the operating system divides the CPUs. Load of several instances adds up.
var places struct {
	sync.Mutex
	base, extra int
}

// AddPlaces makes room for n workers that run, or takes it back.
func AddPlaces(n int) {
	places.Lock()
	defer places.Unlock()
	if places.extra == 0 {
		places.base = runtime.GOMAXPROCS(0)
	}
	places.extra += n
	runtime.GOMAXPROCS(places.base + places.extra)
}
