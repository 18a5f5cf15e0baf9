package libvirt

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// lifecycle is a line of `virsh event --event lifecycle --timestamp`: what happened to a domain, and when virsh heard of it by the
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

// Of the process that listens to a node: how long it runs at most, how long the pauses before the next are, and after how many that
// fail for another reason than a host that does not answer there is none any more.
const (
	listenLimit    = 24 * time.Hour
	listenAgain    = time.Second
	listenAgainMax = 30 * time.Second
	listenFailures = 5
)

// listener hears from the hosts when VMs stop. Without it a stop is noticed when an agent does not answer, and then its moment lies
// somewhere since the agent was heard last. The zero value is ready for use.
type listener struct {
	mu     sync.Mutex
	cancel context.CancelFunc // nil: it has not begun
	closed bool
	all    sync.WaitGroup
	stops  map[domainAt]stop
	places map[string]domainAt  // where VMs were seen last, by identity
	heard  map[string]time.Time // when their agents were heard last
}

// domainAt is a domain on a node, which names it by its name.
type domainAt struct{ node, domain string }

// stop is when a domain stopped.
type stop struct {
	at     time.Time
	paused bool // after an I/O error; it may be told to go on
}

// listen begins to listen to all nodes, once.
func (t *Target) listen() {
	l := &t.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	for _, n := range t.nodes {
		l.all.Go(func() { t.listenTo(ctx, n) })
	}
}

// listenTo keeps one virsh listening to a node, over hosts that are away meanwhile, until ctx ends or the node refuses.
func (t *Target) listenTo(ctx context.Context, n *node) {
	args := []string{"event", "--event=lifecycle", "--loop", "--timestamp"}
	pause := listenAgain
	for failures := 0; failures < listenFailures; {
		began := time.Now()
		_, err := n.run(ctx, call{args: args, limit: listenLimit, line: func(line string) {
			if e, ok := parseLifecycle(line); ok {
				t.happened(n.id, e)
			}
		}})
		t.listener.forget(n.id)
		switch {
		case errors.Is(err, exec.ErrNotFound):
			return
		case time.Since(began) > listenAgainMax:
			pause, failures = listenAgain, 0
		case err != nil && !isLost(err):
			failures++
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, listenAgainMax)
	}
}

// happened notes what happened on a node and hangs up on agents of VMs that have stopped, so that nobody waits for them.
func (t *Target) happened(node string, e lifecycle) {
	// The clock of the wall only tells how long the line took to get here: from then on moments are those of the clock that goes evenly.
	now := time.Now()
	at := now.Add(-max(0, now.Sub(e.at)))
	for _, id := range t.listener.note(domainAt{node, e.domain}, e, at) {
		t.hangUp(id)
	}
}

// note returns the VMs that have stopped.
func (l *listener) note(p domainAt, e lifecycle, at time.Time) []string {
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
		l.put(p, stop{at, true})
		return nil
	case e.kind != "Stopped" && e.kind != "Crashed":
		return nil
	}
	if known, ok := l.stops[p]; !ok || known.paused { // a panic is told first, and that its power was cut for it then
		l.put(p, stop{at, false})
	}
	var gone []string
	for id, where := range l.places {
		if where == p {
			gone = append(gone, id)
		}
	}
	return gone
}

func (l *listener) put(p domainAt, s stop) {
	if l.stops == nil {
		l.stops = map[domainAt]stop{}
	}
	l.stops[p] = s
}

// forget drops what was heard from a node: what happens while nobody listens may make it wrong.
func (l *listener) forget(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.stops {
		if p.node == node {
			delete(l.stops, p)
		}
	}
}

// placed notes where a VM was seen.
func (l *listener) placed(id string, p domainAt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places == nil {
		l.places = map[string]domainAt{}
	}
	l.places[id] = p
}

// hear notes that a VM's agent was heard just now.
func (l *listener) hear(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard == nil {
		l.heard = map[string]time.Time{}
	}
	l.heard[id] = time.Now()
}

// date sets the moment of a stop that was noticed at a moment: the one that the host told, or else some moment since the agent was
// heard last.
func (l *listener) date(s *target.StoppedError, id string, noticed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.At = noticed
	if told, ok := l.stops[l.places[id]]; ok {
		s.At = told.at
	} else if heard, ok := l.heard[id]; ok {
		s.Uncertain = max(0, noticed.Sub(heard))
	}
}

func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	if l.cancel != nil {
		l.cancel()
	}
	l.mu.Unlock()
	l.all.Wait()
}
