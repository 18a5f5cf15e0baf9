package agent

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// crowd bounds how many connections of strangers are open at a time. A stranger costs nothing but to connect, so a crowd that is
// full must not keep the next one out: instead, the one that has said nothing for longest makes room, of the address that has
// the most. But each may stay for the grace at least; while all are younger, admit waits, and those that follow wait in the
// kernel's queue. A peer whose request is not read yet, or is being answered, is not silent. So a peer that sends soon after
// connecting, as a controller and a scraper do, is served, however many connect and say nothing, and however fast they come back. Further bytes
// buy no further time: a stranger that sends one now and then counts as silent, and so does one that does not read the answers.
type crowd struct {
	most  int
	grace time.Duration
	// patience is the grace of a peer that has sent and is not answered yet, from the first byte that was read: an agent whose CPUs are
	// busy with load is slow to answer.
	patience time.Duration
	// answers is the grace of who is being answered.
	answers time.Duration

	mu      sync.Mutex
	members map[*member]struct{}
	count   map[netip.Prefix]int
	left    chan struct{} // holds one token when a member has left
}

// member is one connection of a stranger. It leaves the crowd when it is closed, or known.
type member struct {
	net.Conn
	crowd *crowd
	from  netip.Prefix
	heard time.Time // of its first byte since the last answer; of that answer, or its admission, before there is one; of the answer's begin. crowd.mu
	open  bool      // a byte was read since the last answer. crowd.mu
	busy  bool      // is being answered. crowd.mu
}

func newCrowd(most int, grace, patience, answers time.Duration) *crowd {
	return &crowd{
		most: most, grace: grace, patience: patience, answers: answers, members: map[*member]struct{}{}, count: map[netip.Prefix]int{}, left: make(chan struct{}, 1),
	}
}

// addressBits is how much of an IPv6 address counts: a host may take any address of its network.
const addressBits = 64

// addressOf is the address prefix that connections of one host share; the zero value for connections without addresses.
func addressOf(conn net.Conn) netip.Prefix {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = addressBits
	}
	prefix, _ := address.Prefix(bits) // the zero value for an address that is none
	return prefix
}

// admit makes conn a member. It returns nil, with conn closed, when closed is closed meanwhile.
func (c *crowd) admit(conn net.Conn, closed <-chan struct{}) *member {
	m := &member{Conn: conn, crowd: c, from: addressOf(conn)}
	for {
		wait := c.enter(m)
		if wait <= 0 {
			return m
		}
		select {
		case <-time.After(wait):
		case <-c.left:
		case <-closed:
			_ = conn.Close()
			return nil
		}
	}
}

// enter adds m, or returns how long it has to wait.
func (c *crowd) enter(m *member) (wait time.Duration) {
	c.mu.Lock()
	now := time.Now()
	var goes *member
	if len(c.members) >= c.most {
		if goes, wait = c.quietest(now); wait > 0 && !c.outnumbered(m, goes) {
			c.mu.Unlock()
			return wait
		}
		c.remove(goes)
	}
	m.heard = now
	c.members[m] = struct{}{}
	c.count[m.from]++
	c.mu.Unlock()
	if goes != nil {
		_ = goes.Conn.Close()
	}
	return 0
}

// outnumbered reports whether the address of goes has so many places that one whose address has few need not wait for its grace: who
// connects without end waits behind itself.
func (c *crowd) outnumbered(m, goes *member) bool {
	const times = 8
	return c.count[goes.from] >= times*(c.count[m.from]+1)
}

// quietest is the member that makes room, unless it may stay for a while. The caller holds the lock.
func (c *crowd) quietest(now time.Time) (found *member, stays time.Duration) {
	for {
		most := 0
		for _, n := range c.count {
			most = max(most, n)
		}
		found = nil
		for m := range c.members {
			if c.count[m.from] == most && (found == nil || c.staysUntil(m).Before(c.staysUntil(found))) {
				found = m
			}
		}
		if stays = c.staysUntil(found).Sub(now); stays > 0 || found.open || found.busy || !unread(found.Conn) {
			return found, stays
		}
		found.heard = now // until its first byte is read, which is for us to do
	}
}

func (c *crowd) staysUntil(m *member) time.Time {
	switch {
	case m.busy:
		return m.heard.Add(c.answers)
	case m.open:
		return m.heard.Add(c.patience)
	}
	return m.heard.Add(c.grace)
}

// remove takes m out, if it is in. The caller holds the lock.
func (c *crowd) remove(m *member) {
	if _, in := c.members[m]; !in {
		return
	}
	delete(c.members, m)
	if c.count[m.from]--; c.count[m.from] == 0 {
		delete(c.count, m.from)
	}
	select {
	case c.left <- struct{}{}:
	default:
	}
}

// leave ends m's membership; the crowd no longer closes it.
func (m *member) leave() {
	m.crowd.mu.Lock()
	defer m.crowd.mu.Unlock()
	m.crowd.remove(m)
}

// answer calls what, during which m is not closed for others before the crowd's time for answers is over.
func (m *member) answer(what func()) {
	m.setBusy(true)
	defer m.setBusy(false)
	what()
}

func (c *crowd) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.members) >= c.most
}

func (m *member) setBusy(busy bool) {
	m.crowd.mu.Lock()
	defer m.crowd.mu.Unlock()
	m.busy, m.open, m.heard = busy, busy, time.Now()
}

func (m *member) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if n > 0 {
		m.crowd.mu.Lock()
		if !m.open {
			m.heard, m.open = time.Now(), true
		}
		m.crowd.mu.Unlock()
	}
	return n, err
}

func (m *member) Close() error {
	defer m.leave() // its place is free once it is closed
	return m.Conn.Close()
}

// memberKey finds the member that a request came over in the request's context.
type memberKey struct{}

// crowdHandler keeps connections open while next answers. In a full crowd every connection closes after one response:
// thousands of requests may be in flight whose responses are never read.
func crowdHandler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := r.Context().Value(memberKey{}).(*member)
		if m.crowd.full() {
			w.Header().Set("Connection", "close")
		}
		m.answer(func() { next.ServeHTTP(w, r) })
	})
}

func memberContext(ctx context.Context, conn net.Conn) context.Context {
	if counted, ok := conn.(*countingConn); ok {
		conn = counted.Conn
	}
	return context.WithValue(ctx, memberKey{}, conn)
}

// crowdListener is a listener whose connections are members of a crowd for as long as they are open.
type crowdListener struct {
	net.Listener
	crowd  *crowd
	unread int // bytes that the kernel keeps of what a connection's other end does not read
	once   sync.Once
	closed chan struct{}
}

func newCrowdListener(l net.Listener, c *crowd, unread int) *crowdListener {
	return &crowdListener{Listener: l, crowd: c, unread: unread, closed: make(chan struct{})}
}

func (l *crowdListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if buffered, ok := conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = buffered.SetWriteBuffer(l.unread)
	}
	if m := l.crowd.admit(conn, l.closed); m != nil {
		return m, nil
	}
	return nil, net.ErrClosed
}

func (l *crowdListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
