package lease

import (
	"bufio"
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/wait"
)

// Each holder of a shared lease has a socket of its own, whose name begins with that of the machine's lease. A shared holder
// binds its socket first and then checks for the exclusive one; an exclusive holder binds that first and then checks for
// shared ones. So at least one of two competitors sees the other. If both do, the exclusive one backs off: it waits for less
// time than a shared one.
const (
	sharePatience = time.Second
	wholePatience = 300 * time.Millisecond
	shareLook     = 20 * time.Millisecond
	// meetPeriod is how often a holder polls for other holders. New holders announce themselves; polling finds those that left.
	meetPeriod = 2 * time.Second
	meetsMax   = 256 // unread ones
)

// Meeting reports that another holder shares the machine, from a time or until it.
type Meeting struct {
	With  Holder
	Ended bool
	At    time.Time
	// Uncertain is how much earlier it may have been.
	Uncertain time.Duration
}

// Part is a shared lease of this machine, held by this process. It excludes the exclusive lease.
type Part struct {
	*server
	scope    string
	stop     context.CancelFunc
	work     sync.WaitGroup
	meetings chan Meeting

	mu      sync.Mutex
	present map[string]Holder // others, by the names of their sockets
}

// Share takes a shared lease of this machine for this process. If another process holds the exclusive lease, Share
// returns a *HeldError.
func Share(ctx context.Context, scope string, h Holder) (*Part, error) {
	p := &Part{scope: scope, meetings: make(chan Meeting, meetsMax), present: map[string]Holder{}}
	s, other, err := bind(ctx, partAddress(scope, h), owner{holder: h, met: p.meet})
	if err != nil {
		return nil, err
	}
	if other == nil {
		p.server = s
		other, err = p.whole(ctx)
	}
	if err != nil || other != nil {
		if s != nil {
			s.end()
			s.talks.Wait()
		}
		if err == nil {
			err = &HeldError{By: *other}
		}
		return nil, err
	}
	holding.add(h.ID)
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	p.look(true)
	p.work.Go(func() { wait.Every(beside, meetPeriod, func() { p.look(false) }) })
	return p, nil
}

// partAddress is the socket of a holder of a part.
func partAddress(scope string, h Holder) *net.UnixAddr {
	a := address(scope)
	a.Name += "-" + h.ID
	return a
}

// whole returns the holder of the exclusive lease; nil if it is free. It waits for a holder that is about to back off.
func (p *Part) whole(ctx context.Context) (*Holder, error) {
	for until := time.Now().Add(sharePatience); ; {
		if !slices.Contains(listening(address(p.scope).Name), address(p.scope).Name) {
			return nil, nil
		}
		if time.Now().After(until) {
			other, _ := ask(address(p.scope), nil)
			return &other, nil
		}
		if err := wait.For(ctx, shareLook); err != nil {
			return nil, err
		}
	}
}

// bindAlone takes the whole lease, or says who has it or a part of it.
func bindAlone(ctx context.Context, scope string, o owner) (*server, *Holder, error) {
	s, other, err := bind(ctx, address(scope), o)
	if err != nil || other != nil {
		return nil, other, err
	}
	for until := time.Now().Add(wholePatience); ; {
		parts := parts(scope)
		if len(parts) == 0 {
			return s, nil, nil
		}
		if time.Now().After(until) {
			h, _ := ask(&net.UnixAddr{Net: "unix", Name: parts[0]}, nil)
			other = &h
			break
		}
		if err = wait.For(ctx, shareLook); err != nil {
			break
		}
	}
	s.end()
	s.talks.Wait()
	return nil, other, err
}

// parts returns the sockets of those who share a machine.
func parts(scope string) []string {
	prefix := address(scope).Name + "-"
	return slices.DeleteFunc(listening(prefix), func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

// listening returns the names of listening abstract sockets with a prefix, from /proc/net/unix (proc_net_unix(5)). It
// returns none if that cannot be read, as on systems without such sockets.
func listening(prefix string) []string {
	file, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil
	}
	defer file.Close()
	const acceptsFlag = "00010000"
	var names []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 8 && fields[3] == acceptsFlag && strings.HasPrefix(fields[7], prefix) {
			names = append(names, fields[7])
		}
	}
	return names
}

// Fence is the number of the lease.
func (p *Part) Fence() uint64 { return p.holder.Fence }

// Lost never reports: see Held.
func (p *Part) Lost() <-chan Holder { return nil }

// Meetings reports the other holders that share the machine, with their begin and end.
func (p *Part) Meetings() <-chan Meeting { return p.meetings }

// Unlock releases the shared lease.
func (p *Part) Unlock() error {
	p.stop()
	p.work.Wait()
	holding.remove(p.holder.ID)
	p.end()
	p.talks.Wait()
	return nil
}

// meet takes the word of a holder who has just come.
func (p *Part) meet(h Holder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := partAddress(p.scope, h).Name
	if _, known := p.present[name]; known || len(p.present) >= meetsMax || !slices.Contains(parts(p.scope), name) {
		return // it may say what it likes, but it has to be there
	}
	h = h.Printable()
	p.present[name] = h
	p.tell(Meeting{With: h, At: time.Now()})
}

func (p *Part) tell(m Meeting) {
	if m.With.Cleaning {
		return // it loads nothing
	}
	select {
	case p.meetings <- m:
	default: // the reader is slow; the queued meetings are enough
	}
}

// look compares who is there with who was. At the first look all the others were there before.
func (p *Part) look(first bool) {
	own := partAddress(p.scope, p.holder).Name
	there := slices.DeleteFunc(parts(p.scope), func(name string) bool { return name == own })
	came, uncertain := map[string]Holder{}, meetPeriod
	if first {
		uncertain = 0
	}
	p.mu.Lock()
	for name, h := range p.present {
		if !slices.Contains(there, name) {
			delete(p.present, name)
			p.tell(Meeting{With: h, Ended: true, At: time.Now(), Uncertain: meetPeriod})
		}
	}
	there = slices.DeleteFunc(there, func(name string) bool { _, known := p.present[name]; return known })
	p.mu.Unlock()
	for _, name := range there {
		if h, err := ask(&net.UnixAddr{Net: "unix", Name: name}, &p.holder); err == nil || h.Process.PID != 0 {
			came[name] = h // one that is stopped does not say who it is
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, h := range came {
		if _, known := p.present[name]; !known && len(p.present) < meetsMax {
			p.present[name] = h
			p.tell(Meeting{With: h, At: time.Now(), Uncertain: uncertain})
		}
	}
}
