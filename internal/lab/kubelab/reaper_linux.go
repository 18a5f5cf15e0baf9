package kubelab

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// reaper starts processes of a node and waits for them and for orphans, as PID 1 must: shims of containers are orphans. No other code of
// the process may wait for children.
type reaper struct {
	logs string // folder

	mu      sync.Mutex // held from starting a process until it is known
	waiting map[int]chan<- unix.WaitStatus
}

func newReaper(logs string) *reaper {
	r := &reaper{logs: logs, waiting: map[int]chan<- unix.WaitStatus{}}
	wake := make(chan os.Signal, 1)
	signal.Notify(wake, unix.SIGCHLD)
	go func() { // as long as the process
		for tick := time.NewTicker(time.Second); ; { // signals of one kind may come as one
			select {
			case <-wake:
			case <-tick.C:
			}
			r.reap()
		}
	}()
	return r
}

func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status unix.WaitStatus
		id, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || id <= 0 {
			return
		}
		if to := r.waiting[id]; to != nil {
			to <- status // there is room for it
			delete(r.waiting, id)
		}
	}
}

// start starts a program that writes NAME.log.
func (r *reaper) start(name string, argv []string) (<-chan unix.WaitStatus, error) {
	log, err := os.OpenFile(filepath.Join(r.logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Dir: "/", Env: environment(), Files: []*os.File{nil, log, log}})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	ended := make(chan unix.WaitStatus, 1)
	r.waiting[p.Pid] = ended
	return ended, p.Release()
}

// serve starts a program that runs as long as the node; its end is one of the node.
func (r *reaper) serve(name string, over chan<- error, argv ...string) error {
	ended, err := r.start(name, argv)
	if err != nil {
		return err
	}
	go func() {
		status := <-ended
		over <- fmt.Errorf("%s ended with status %#x", name, uint32(status))
	}()
	return nil
}

// run runs a program to its end.
func (r *reaper) run(name string, argv ...string) error {
	ended, err := r.start(name, argv)
	if err != nil {
		return err
	}
	if status := <-ended; status != 0 {
		text, _ := os.ReadFile(filepath.Join(r.logs, name+".log"))
		return fmt.Errorf("%s ended with status %#x: %s", name, uint32(status), text)
	}
	return nil
}
