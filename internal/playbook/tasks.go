package playbook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
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
	unmatchedMax     = 10
)

// entry is one line of callback.py.
type entry struct {
	Event   string   `json:"event"` // start, task, ok, skipped, failed, unreachable, unmatched, stats
	Task    string   `json:"task"`
	Host    string   `json:"host"`
	Changed bool     `json:"changed"`
	Ignored bool     `json:"ignored"`
	Seconds *float64 `json:"seconds"`
	Message string   `json:"message"`
	// Facts marks the task that ansible itself puts in front of a play.
	Facts bool `json:"facts"`
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

	heard     bool // callback.py has written
	did       deeds
	unmatched []string // plays without a machine
}

// deeds are what at least one machine did.
type deeds struct {
	work        bool // a task of the playbook
	facts       bool // only what ansible puts in front of a play
	skipped     bool // a task whose condition was false
	unreachable bool
	began       bool // a task, which may be one that only ends the play
}

func (d *deeds) add(e entry) {
	switch e.Event {
	case "ok", "failed":
		d.work, d.facts = d.work || !e.Facts, d.facts || e.Facts
	case "skipped":
		d.skipped = true
	case "unreachable":
		d.unreachable = true
	}
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
	switch e.Event {
	case "start":
		t.heard = true
		return
	case "unmatched":
		if len(t.unmatched) < unmatchedMax {
			t.unmatched = append(t.unmatched, e.Task)
		}
		return
	case "task":
		t.did.began = true
		t.notes.Event(interval.Event{Kind: interval.EventTaskStarted, Message: short(t.playbook + ": " + e.Task)})
		return
	}
	t.did.add(e)
	ev := interval.Event{Kind: interval.EventTaskEnded, Subject: short(t.mask(e.Host)), Message: e.Task}
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

// idle reports what a playbook that ansible takes for a success did not do. A play whose pattern matches no machine is only a warning of
// ansible, and a misspelled group would otherwise pass for work that was done.
func (t *tasks) idle() error {
	plays := ""
	if len(t.unmatched) > 0 {
		plays = "no machine of the inventory matches the play " + textio.JoinAnd(quoted(t.unmatched))
	}
	switch {
	case !t.heard:
		t.doubt("its tasks are not recorded: this version of ansible did not load the callback plugin")
		return nil
	case t.did == (deeds{}) && plays != "":
		return fmt.Errorf("no task ran: %s", plays)
	case t.did == (deeds{}):
		return errors.New("no task ran")
	case t.did.work:
	case t.did.skipped:
		t.doubt("every task was skipped")
	case t.did.facts:
		t.doubt("no task ran after the facts were gathered")
	case t.did.unreachable:
		t.doubt("no machine was reachable, which the playbook ignores")
	default:
		t.doubt("no task ran")
	}
	if plays != "" {
		t.doubt(plays)
	}
	return nil
}

func (t *tasks) doubt(text string) {
	t.notes.Disturb(t.playbook, fmt.Sprintf("playbook %q: %s", t.playbook, text))
}

func quoted(names []string) (list []string) {
	for _, name := range names {
		list = append(list, strconv.Quote(name))
	}
	return list
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
