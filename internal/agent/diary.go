package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/braggdev/bragg/internal/load"
)

// diaryBytesMax bounds what an agent keeps of what it had to say; it fits into one answer.
const (
	diaryBytesMax  = 256 << 10
	diaryLineBytes = 4 << 10 // room for the line that makes it too long
)

// diary passes on what is written to it and keeps the end of it, in whole lines, for controllers that ask.
type diary struct {
	mu   sync.Mutex
	next io.Writer // may be nil
	kept []byte
	cut  bool
}

// newDiary takes its memory at once, so that an agent needs as much on its first day as on its tenth.
func newDiary(next io.Writer) *diary {
	return &diary{next: next, kept: make([]byte, 0, diaryBytesMax+diaryLineBytes)}
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = append(d.kept, p...)
	if over := len(d.kept) - diaryBytesMax; over > 0 {
		if line := bytes.IndexByte(d.kept[over:], '\n'); line >= 0 {
			over += line + 1
		}
		d.kept, d.cut = append(d.kept[:0], d.kept[over:]...), true
	}
	if d.next != nil {
		_, _ = d.next.Write(p) // a log that cannot be written must not stop the load
	}
	return len(p), nil
}

func (d *diary) text() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut {
		return append([]byte("(what came before was not kept)\n"), d.kept...)
	}
	return bytes.Clone(d.kept)
}

// noteTask says what came of the phases of a workload.
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

// serveLog answers with what the agent had to say, the oldest first.
func (s *Server) serveLog(w http.ResponseWriter, _ *http.Request) {
	s.at("agent.log")
	w.Header().Set("Content-Type", textType)
	_, _ = w.Write(s.diary.text())
}

// Log returns what the agent had to say since its start, at most the last 256 KiB.
func (c *Client) Log(ctx context.Context) (text []byte, err error) {
	response, err := c.send(ctx, request{http.MethodGet, "/v1/log", nil})
	if err != nil {
		return nil, fmt.Errorf("fetch the log of the agent: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if text, err = io.ReadAll(io.LimitReader(response.Body, replyBytesMax)); err != nil {
		return nil, fmt.Errorf("fetch the log of the agent: %w", c.lostError(ctx, err))
	}
	return text, nil
}
