package iohosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/textio"
)

// Operations of requests.
const (
	opHello = "hello"
	opRun   = "run"
)

type request struct {
	Operation string `json:"operation"`
}

// hello answers opHello: the host's identity, and the time of its clocks.
type hello struct {
	Version  string `json:"version"`
	Platform string `json:"platform"` // "linux/amd64"
	Hostname string `json:"hostname"`
	Boot     string `json:"boot"` // boot ID of the system: two names of one machine have the same
	Surroundings
	UnixNanos   int64 `json:"unix_ns"`
	UptimeNanos int64 `json:"uptime_ns"` // of the program
}

// Both sides send messages over the stream of opRun, beginning with Jobs; docs/guides/hosts.md shows the course of a run.
// Exactly one member of a message is set.
type message struct {
	// From the host.
	Say      *string              `json:"say,omitempty"`
	Ready    *ready               `json:"ready,omitempty"`
	Progress *fioreport.Report    `json:"progress,omitempty"` // the current report; with Done the final one
	Periods  *periods             `json:"periods,omitempty"`
	Fault    *fioreport.WireError `json:"fault,omitempty"` // the jobs cannot be run
	End      *struct{}            `json:"end,omitempty"`   // no further messages

	// From the controller.
	Jobs  *order    `json:"jobs,omitempty"`
	Start *start    `json:"start,omitempty"`
	Stop  *struct{} `json:"stop,omitempty"`
}

// order is the job order for a host.
type order struct {
	Jobs
	Host int    `json:"host"` // its number, for seeds
	Name string `json:"name"` // for file names
}

// ready reports that the jobs of a phase are prepared, except for the faults.
type ready struct {
	Phase  int                    `json:"phase"`
	Faults []*fioreport.WireError `json:"faults,omitempty"`
}

// start sets the start time of a phase.
type start struct {
	Phase       int   `json:"phase"`
	UptimeNanos int64 `json:"at_uptime_ns"`
}

// periods replaces a row's periods from the given one on.
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

// decode reads one line and refuses values that a reader could not handle safely.
func decode(line []byte) (*message, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	set := 0
	for _, is := range []bool{
		m.Say != nil, m.Ready != nil, m.Progress != nil, m.Periods != nil, m.Fault != nil, m.End != nil, m.Jobs != nil, m.Start != nil, m.Stop != nil,
	} {
		if is {
			set++
		}
	}
	if set != 1 {
		return nil, fmt.Errorf("read message: %d members instead of one", set)
	}
	if p := m.Periods; p != nil {
		if p.Row < 0 || p.Row >= rowsMax || p.From < 0 || p.From > periodsRowMax || len(p.List) > periodsChunk {
			return nil, errors.New("read message: periods out of bounds")
		}
		for _, one := range p.List {
			if one.LengthNanos < 0 || one.EndNanos < 0 || one.EndNanos == math.MaxInt64 {
				return nil, errors.New("read message: a period is out of bounds")
			}
		}
	}
	if m.Progress != nil && len(m.Progress.Rows) > rowsMax {
		return nil, fmt.Errorf("read message: %d rows", len(m.Progress.Rows))
	}
	if s := m.Start; s != nil && (s.UptimeNanos < 0 || s.UptimeNanos > wire.UptimeMax) {
		return nil, errors.New("read message: start out of bounds")
	}
	if r := m.Ready; r != nil && (r.Phase < 0 || r.Phase >= rowsMax) {
		return nil, errors.New("read message: phase out of bounds")
	}
	return &m, nil
}

// next reads one message; io.EOF means that there are no more.
func next(l *textio.LineReader) (*message, error) {
	line, err := l.Next()
	if err != nil {
		return nil, err
	}
	return decode(line)
}

// send writes a message in one piece: several goroutines may write to a stream.
func send(to io.Writer, m *message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = to.Write(append(text, '\n'))
	return err
}
