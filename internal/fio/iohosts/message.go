package iohosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/braggdev/bragg/internal/fio/fioreport"

	"github.com/braggdev/bragg/internal/textio"
)

// Controller and host talk in lines of JSON; docs/guides/hosts.md shows the course of a run. Exactly one member of a
// message is set.
type message struct {
	// From the host.
	Hello    *hello               `json:"hello,omitempty"`
	Pong     *pong                `json:"pong,omitempty"`
	Say      *string              `json:"say,omitempty"`
	Ready    *ready               `json:"ready,omitempty"`
	Progress *fioreport.Report    `json:"progress,omitempty"` // the current report; with Done the final one
	Periods  *periods             `json:"periods,omitempty"`
	Fault    *fioreport.WireError `json:"fault,omitempty"` // the jobs cannot be run
	End      *struct{}            `json:"end,omitempty"`   // everything was said

	// From the controller.
	Ping  *int64    `json:"ping,omitempty"`
	Jobs  *order    `json:"jobs,omitempty"`
	Start *start    `json:"start,omitempty"`
	Stop  *struct{} `json:"stop,omitempty"`
}

// hello says who answers.
type hello struct {
	Version  string `json:"version"`
	Platform string `json:"platform"` // "linux/amd64"
	Hostname string `json:"hostname"`
	Boot     string `json:"boot"` // id of the system's start: two names of one machine have the same
	Surroundings
}

// pong answers a ping with the host's clocks.
type pong struct {
	Ping      int64 `json:"ping"`
	MonoNanos int64 `json:"mono_ns"`
	WallNanos int64 `json:"wall_ns"`
}

// order is what a host shall run.
type order struct {
	Jobs
	Host int    `json:"host"` // its number, for seeds
	Name string `json:"name"` // for file names
}

// ready says that the jobs of a phase are prepared, but for the faults.
type ready struct {
	Phase  int                    `json:"phase"`
	Faults []*fioreport.WireError `json:"faults,omitempty"`
}

// start names the moment on the host's clock at which a phase starts.
type start struct {
	Phase     int   `json:"phase"`
	MonoNanos int64 `json:"mono_ns"`
}

// periods replaces what is known of a row's periods from the given one on.
type periods struct {
	Row  int                `json:"row"`
	From int                `json:"from"`
	List []fioreport.Period `json:"list"`
}

const (
	lineBytesMax   = 64 << 20 // of a message: a report of thousands of rows
	rowsMax        = 1 << 16
	periodsChunk   = 2000 // periods in one message
	periodsRowMax  = 1 << 24
	periodsOverlap = 64 // periods that may still change when further clones deliver theirs
)

// decode reads one line and refuses what could make a reader misbehave.
func decode(line []byte) (*message, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	set := 0
	for _, is := range []bool{
		m.Hello != nil, m.Pong != nil, m.Say != nil, m.Ready != nil, m.Progress != nil, m.Periods != nil, m.Fault != nil, m.End != nil,
		m.Ping != nil, m.Jobs != nil, m.Start != nil, m.Stop != nil,
	} {
		if is {
			set++
		}
	}
	if set != 1 {
		return nil, fmt.Errorf("read message: %d members instead of one", set)
	}
	if p := m.Periods; p != nil && (p.Row < 0 || p.Row >= rowsMax || p.From < 0 || p.From > periodsRowMax || len(p.List) > periodsChunk) {
		return nil, errors.New("read message: periods out of bounds")
	}
	if p := m.Periods; p != nil {
		for _, one := range p.List {
			if one.LengthNanos < 0 || one.EndNanos < 0 || one.EndNanos == math.MaxInt64 {
				return nil, errors.New("read message: a period is out of bounds")
			}
		}
	}
	if m.Progress != nil && len(m.Progress.Rows) > rowsMax {
		return nil, fmt.Errorf("read message: %d rows", len(m.Progress.Rows))
	}
	if r := m.Ready; r != nil && (r.Phase < 0 || r.Phase >= rowsMax) {
		return nil, errors.New("read message: phase out of bounds")
	}
	return &m, nil
}

// next reads one message; io.EOF says that nothing follows.
func next(l *textio.LineReader) (*message, error) {
	line, err := l.Next()
	if err != nil {
		return nil, err
	}
	return decode(line)
}

// writer writes messages, one at a time.
type writer struct {
	mu sync.Mutex
	to io.Writer
}

func (w *writer) send(m *message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.to.Write(append(text, '\n'))
	return err
}
