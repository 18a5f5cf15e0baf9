package database

import (
	"bytes"
	"sync"

	"github.com/braggdev/bragg/internal/load/program"
)

// reasons is why a server failed, as it says in its log: the lines that are errors, or its first and last ones where none is. A server that cannot
// start may write twenty lines, with the cause in the middle.
type reasons struct {
	wrong func(line string) bool // nil: unknown

	mutex     sync.Mutex
	part      []byte // of a line
	told, all *program.Tail
}

func newReasons(wrong func(line string) bool) *reasons {
	return &reasons{wrong: wrong, told: program.NewTail(nil), all: program.NewTail(nil)}
}

const logLineBytesMax = 4 << 10

// Write receives the log.
func (r *reasons) Write(p []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			r.part = append(r.part, rest[:min(len(rest), max(0, logLineBytesMax-len(r.part)))]...)
			break
		}
		line := string(append(r.part, rest[:end]...))
		r.part, rest = r.part[:0], rest[end+1:]
		if r.all.Line(line); r.wrong != nil && r.wrong(line) {
			r.told.Line(line)
		}
	}
	return len(p), nil
}

// running forgets what the server said while it started.
func (r *reasons) running() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.told = program.NewTail(nil)
}

// errors are the lines that are errors, for the end of a message; "" without any.
func (r *reasons) errors() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.told.Quoted()
}

// quoted is why the server ended.
func (r *reasons) quoted() string {
	if text := r.errors(); text != "" {
		return text
	}
	return r.all.Quoted()
}
