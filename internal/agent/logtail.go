package agent

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/load"
)

const (
	tailBytesMax  = 256 << 10 // of the log; it fits into one answer
	tailLineBytes = 4 << 10   // room for the line that makes it too long
)

// logTail passes on the log that is written to it and keeps its end, in whole lines, for controllers.
type logTail struct {
	mu   sync.Mutex
	next io.Writer // may be nil
	kept []byte
	cut  bool
}

// newLogTail takes its memory at once, so that an agent needs as much on its first day as on its tenth.
func newLogTail(next io.Writer) *logTail {
	return &logTail{next: next, kept: make([]byte, 0, tailBytesMax+tailLineBytes)}
}

func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, p...)
	if over := len(l.kept) - tailBytesMax; over > 0 {
		if line := bytes.IndexByte(l.kept[over:], '\n'); line >= 0 {
			over += line + 1
		}
		l.kept, l.cut = append(l.kept[:0], l.kept[over:]...), true
	}
	if l.next != nil {
		_, _ = l.next.Write(p) // a log that cannot be written must not stop the load
	}
	return len(p), nil
}

func (l *logTail) text() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return append([]byte("(earlier lines were not kept)\n"), l.kept...)
	}
	return bytes.Clone(l.kept)
}

// noteTask logs a phase of a workload.
func (s *Server) noteTask(w load.Workload, phase string, err error) {
	name := fmt.Sprintf("%s %d", w.Name, w.Instance)
	if w.Prefill {
		name += " (prefill)"
	}
	if err != nil {
		phase += ": " + err.Error()
	}
	s.log.Printf("%s: %s", name, phase)
}

// serveLog answers with the tail of the log, the oldest line first.
func (s *Server) serveLog(w http.ResponseWriter, _ *http.Request) {
	s.at("agent.log")
	w.Header().Set("Content-Type", wire.TextType)
	_, _ = w.Write(s.tail.text())
}
