package playbook

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/verb"
)

// Bounds on what a playbook can make this program keep.
const (
	taskLineBytesMax = 64 << 10
	failuresMax      = 1000
	machinesShownMax = 50 // of more than these, only failures are events of their own
	messageBytesMax  = 400
)

// entry is one line of callback.py.
type entry struct {
	Event   string   `json:"event"` // task, ok, skipped, failed, unreachable, stats
	Task    string   `json:"task"`
	Host    string   `json:"host"`
	Changed bool     `json:"changed"`
	Ignored bool     `json:"ignored"`
	Seconds *float64 `json:"seconds"`
	Message string   `json:"message"`
	// Failures is, in stats, how many failures of the host no rescue handled.
	Failures int `json:"failures"`
}

// tasks turns the lines of callback.py into events. Only one goroutine uses it until it has read all.
type tasks struct {
	notes    verb.Notes
	machines machines
	mask     func(string) string
	playbook string
	failures []failure
}

// failure is a failed task of a machine.
type failure struct {
	host string // in the inventory
	err  error
}

// read reads lines until the end of the pipe. A line that is not of callback.py is skipped: a task on this machine may write there.
func (t *tasks) read(in io.Reader) {
	known := t.machines.all()
	lines := textio.NewLineReader(in, taskLineBytesMax)
	for {
		line, err := lines.Next()
		if err != nil {
			_, _ = io.Copy(io.Discard, in) // so that ansible does not wait
			return
		}
		var e entry
		if json.Unmarshal(line, &e) == nil {
			t.note(e, known)
		}
	}
}

func (t *tasks) note(e entry, known map[string]*machine) {
	if e.Event == "stats" {
		t.settle(e)
		return
	}
	e.Task, e.Message = short(t.mask(e.Task)), short(t.mask(e.Message))
	if e.Event == "task" {
		t.notes.Event(interval.Event{Kind: interval.EventTaskStarted, Message: fmt.Sprintf("%s: %s", t.playbook, e.Task)})
		return
	}
	ev := interval.Event{Kind: interval.EventTaskEnded, Subject: e.Host, Message: e.Task}
	if m := known[e.Host]; m != nil {
		ev.Subject, ev.Group = m.subject(), m.group()
	}
	took := ""
	if e.Seconds != nil && *e.Seconds >= 0 && *e.Seconds < 1e9 {
		span := time.Duration(*e.Seconds * float64(time.Second))
		ev.SpanNanos, took = span.Nanoseconds(), " in "+span.Round(10*time.Millisecond).String()
	}
	switch {
	case e.Event == "ok" && e.Changed:
		ev.Message += ": changed" + took
	case e.Event == "ok":
		ev.Message += ": ok" + took
	case e.Event == "failed" || e.Event == "unreachable":
		ev.Message += ": " + e.Event + took
		if ev.Error = e.Message; ev.Error == "" {
			ev.Error = "no reason given"
		}
		if e.Ignored {
			ev.Message, ev.Error = ev.Message+", ignored: "+ev.Error, ""
			break
		}
		if len(t.failures) < failuresMax {
			t.failures = append(t.failures, failure{e.Host, fmt.Errorf("task %q on %s %s: %s", e.Task, ev.Subject, e.Event, ev.Error)})
		}
	default:
		return
	}
	if ev.Error != "" || len(known) <= machinesShownMax {
		t.notes.Event(ev)
	}
}

// settle forgets the failures of a machine that a rescue handled: all but its last ones, because it runs nothing after those.
func (t *tasks) settle(e entry) {
	left := e.Failures
	for i := len(t.failures) - 1; i >= 0; i-- {
		if t.failures[i].host != e.Host {
			continue
		}
		if left--; left < 0 {
			t.failures = slices.Delete(t.failures, i, i+1)
		}
	}
}

// failed names what failed first, and how many more did. It is for a playbook that ansible reported as failed.
func (t *tasks) failed() error {
	switch more := len(t.failures) - 1; {
	case more < 0:
		return nil
	case more == 0:
		return t.failures[0].err
	default:
		return fmt.Errorf("%w (and %d more)", t.failures[0].err, more)
	}
}

// short is a text on one line, cut in its middle, so that its beginning and its end, which has the error, stay.
func short(text string) string {
	text = textio.Line(strings.Join(strings.Fields(text), " "))
	if len(text) <= messageBytesMax {
		return text
	}
	half := messageBytesMax / 2
	return strings.ToValidUTF8(text[:half], "") + " … " + strings.ToValidUTF8(text[len(text)-half:], "")
}
