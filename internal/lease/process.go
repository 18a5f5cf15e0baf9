package lease

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Process identifies a process uniquely, across machines and reboots.
type Process struct {
	PID       int    `json:"pid"`
	Start     uint64 `json:"start,omitempty"`     // in ticks since the machine's start
	Boot      string `json:"boot,omitempty"`      // id of that start
	Namespace string `json:"namespace,omitempty"` // of process ids
}

var thisProcess = sync.OnceValue(func() Process {
	p := Process{PID: os.Getpid()}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return p
	}
	p.Boot = strings.TrimSpace(string(boot))
	p.Namespace, _ = os.Readlink("/proc/self/ns/pid")
	p.Start, _ = startOf(p.PID)
	return p
})

// startOf reads when a process began; it is gone when ok is false.
func startOf(pid int) (ticks uint64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name, in parentheses, may hold anything. Behind it follow the state, which is field 3, and the start as field 22.
	fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	ticks, err = strconv.ParseUint(fields[19], 10, 64)
	return ticks, err == nil
}

// here reports whether the process is, or was, of this machine, and in sight.
func (p Process) here() bool {
	own := thisProcess()
	return own.Boot != "" && own.Namespace != "" && p.Boot == own.Boot && p.Namespace == own.Namespace
}

// gone reports whether the holder of a lease is known to have ended without giving it back. Of a process on another machine
// nothing is known.
func (h Holder) gone() bool {
	if !h.Process.here() {
		return false
	}
	if h.Process == thisProcess() {
		return !holding.has(h.ID) // it could not be reached when the lease was to be given back
	}
	start, alive := startOf(h.Process.PID)
	return !alive || start != h.Process.Start
}

// holding are the ids of the leases that this process has.
var holding ids

type ids struct {
	mu  sync.Mutex
	all map[string]bool
}

func (s *ids) add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]bool{}
	}
	s.all[id] = true
}

func (s *ids) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

func (s *ids) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}
