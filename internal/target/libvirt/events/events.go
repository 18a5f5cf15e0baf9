// Package events listens to the lifecycle events of hosts and derives from them when VMs stopped. It makes no
// decisions: callers query the time of a stop that they detected, and close the connections to agents of VMs that it
// reports.
//
//	virsh event --loop, one process per host ──▶ lifecycle ──▶ stops by domain ──▶ Listener.Date
package events

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/wait"
)

// lifecycle is a line of `virsh event --event lifecycle --timestamp`: what happened to a domain, and when virsh received it by the
// clock of this machine.
type lifecycle struct {
	at           time.Time
	domain       string // its name; virsh prints no UUID
	kind, detail string // "Stopped", "Destroyed", as virsh-domain-event.c of libvirt spells them
}

// Versions of virsh differ in the quotes around the name.
var lifecycleText = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+[+-]\d{4}): event 'lifecycle' for domain (?:'(.+)'|([^'].*)): ([A-Z][A-Za-z]+)(?: (.+))?$`)

func parseLifecycle(line string) (lifecycle, bool) {
	m := lifecycleText.FindStringSubmatch(line)
	if m == nil {
		return lifecycle{}, false
	}
	at, err := time.Parse("2006-01-02 15:04:05-0700", m[1])
	return lifecycle{at: at, domain: m[2] + m[3], kind: m[4], detail: m[5]}, err == nil
}

// Of the process that listens to a host: how long it runs at most, the pauses before the next, and the number of failures, other than
// a host that does not answer, after which listening ends.
const (
	listenLimit    = 24 * time.Hour
	listenAgain    = time.Second
	listenAgainMax = 30 * time.Second
	listenFailures = 5
)

// Listener records when VMs stopped. Without an event, a stop is detected when an agent does not answer; its time is
// then uncertain by the time since the agent's last answer.
type Listener struct {
	mu     sync.Mutex
	cancel context.CancelFunc // nil: it has not begun
	closed bool
	all    sync.WaitGroup
	stops  map[place]stop
	places map[string]place     // where VMs were seen last, by identity
	heard  map[string]time.Time // when their agents were heard last
}

// place is a domain on a host. Events name a domain by its name alone.
type place struct{ host, domain string }

// stop is when a domain stopped.
type stop struct {
	at     time.Time
	paused bool // after an I/O error; it may be resumed
}

// New returns a listener that does not listen yet.
func New() *Listener {
	return &Listener{stops: map[place]stop{}, places: map[string]place{}, heard: map[string]time.Time{}}
}

// Listen starts listening to all hosts, once. It calls stopped with the identity of each stopped VM whose domain was
// Placed.
func (l *Listener) Listen(hosts []*virsh.Host, stopped func(id string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	for _, h := range hosts {
		l.all.Go(func() { l.listenTo(ctx, h, stopped) })
	}
}

// listenTo keeps one virsh listening to a host, also while the host is away, until ctx ends or the host refuses.
func (l *Listener) listenTo(ctx context.Context, h *virsh.Host, stopped func(id string)) {
	c := virsh.Call{Args: []string{"event", "--event=lifecycle", "--loop", "--timestamp"}, Limit: listenLimit, Line: func(line string) {
		e, ok := parseLifecycle(line)
		if !ok {
			return
		}
		// The wall clock only says how long the line took to get here: moments are of the monotonic clock from here on.
		now := time.Now()
		at := now.Add(-max(0, now.Sub(e.at)))
		for _, id := range l.note(place{h.ID, e.domain}, e, at) {
			stopped(id)
		}
	}}
	pause := listenAgain
	for failures := 0; failures < listenFailures; {
		began := time.Now()
		_, err := h.Run(ctx, c)
		l.forget(h.ID)
		switch {
		case errors.Is(err, exec.ErrNotFound):
			return
		case time.Since(began) > listenAgainMax:
			pause, failures = listenAgain, 0
		case err != nil && !virsh.IsLost(err):
			failures++
		}
		if wait.For(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, listenAgainMax)
	}
}

// note returns the VMs that have stopped.
func (l *Listener) note(p place, e lifecycle, at time.Time) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case e.kind == "Started" || e.kind == "Resumed":
		delete(l.stops, p)
		for id, was := range l.places { // after a migration it is here
			if was.domain == p.domain {
				l.places[id] = p
			}
		}
		return nil
	case e.kind == "Stopped" && e.detail == "Migrated":
		delete(l.stops, p)
		return nil
	case e.kind == "Suspended" && e.detail == "I/O Error":
		l.stops[p] = stop{at, true}
		return nil
	case e.kind != "Stopped" && e.kind != "Crashed":
		return nil
	}
	if known, ok := l.stops[p]; !ok || known.paused { // a panic is reported before the power cut that follows from it
		l.stops[p] = stop{at, false}
	}
	var gone []string
	for id, where := range l.places {
		if where == p {
			gone = append(gone, id)
		}
	}
	return gone
}

// forget drops the stops of a host: events that are missed while no process listens may make them wrong.
func (l *Listener) forget(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.stops {
		if p.host == host {
			delete(l.stops, p)
		}
	}
}

// Placed records the host and the domain name of a VM.
func (l *Listener) Placed(id, host, domain string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places[id] = place{host, domain}
}

// Heard records that the agent of a VM has just sent data.
func (l *Listener) Heard(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard[id] = time.Now()
}

// Date sets the time of a detected stop: that of the host's event, or else a time since the agent's last answer.
func (l *Listener) Date(s *target.StoppedError, id string, noticed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.At = noticed
	if stop, ok := l.stops[l.places[id]]; ok {
		s.At = stop.at
	} else if heard, ok := l.heard[id]; ok {
		s.Uncertain = max(0, noticed.Sub(heard))
	}
}

// Close ends all listening processes.
func (l *Listener) Close() {
	l.mu.Lock()
	l.closed = true
	if l.cancel != nil {
		l.cancel()
	}
	l.mu.Unlock()
	l.all.Wait()
}
