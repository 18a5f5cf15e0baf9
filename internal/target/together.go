package target

import (
	"context"
	"sync"
	"time"
)

// Gate lets several operations send their decisive command at the same time: each checks and prepares by itself, which
// takes different times, and then waits for all others that can still arrive.
type Gate struct {
	mu      sync.Mutex
	missing int
	open    chan struct{}
}

// gateMax bounds the wait for others: slow preparation of one must not delay the others.
const gateMax = 30 * time.Second

// NewGate makes a gate for this many members.
func NewGate(members int) *Gate { return &Gate{missing: members, open: make(chan struct{})} }

func (g *Gate) arrive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.missing--; g.missing == 0 {
		close(g.open)
	}
}

type gateKey struct{}

// member is one of the members of a gate.
type member struct {
	gate *Gate
	once sync.Once
}

// WithGate makes a context of one member. The returned function reports that this member has arrived or will not.
func WithGate(ctx context.Context, g *Gate) (inner context.Context, leave func()) {
	m := &member{gate: g}
	return context.WithValue(ctx, gateKey{}, m), func() { m.once.Do(g.arrive) }
}

// Together waits until all other members of the gate have arrived or left. Without a gate it returns at once.
func Together(ctx context.Context) {
	m, ok := ctx.Value(gateKey{}).(*member)
	if !ok {
		return
	}
	m.once.Do(m.gate.arrive)
	late := time.NewTimer(gateMax)
	defer late.Stop()
	select {
	case <-m.gate.open:
	case <-late.C:
	case <-ctx.Done():
	}
}
