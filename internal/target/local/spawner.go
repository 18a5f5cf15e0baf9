package local

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner starts processes from one thread that lives until close. The zero value is ready for use. The death signal of a
// child depends on the thread that started it, and the Go runtime may end any thread that is not locked.
type spawner struct {
	mu      sync.Mutex
	work    chan spawnRequest // nil before the first start
	stopped chan struct{}
	closed  bool
}

type spawnRequest struct {
	command *exec.Cmd
	done    chan error
}

func (s *spawner) start(command *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.work == nil {
		s.work, s.stopped = make(chan spawnRequest), make(chan struct{})
		go s.run()
	}
	r := spawnRequest{command, make(chan error, 1)}
	s.work <- r
	return <-r.done
}

// run never unlocks its thread: when the thread ends, so does every child that still runs.
func (s *spawner) run() {
	runtime.LockOSThread()
	defer close(s.stopped)
	for r := range s.work {
		r.done <- r.command.Start()
	}
}

func (s *spawner) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	if s.work != nil {
		close(s.work)
		<-s.stopped
	}
}
