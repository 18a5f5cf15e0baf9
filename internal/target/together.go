package target

import (
	"context"
	"sync"
	"time"
)

// Gate lets several operations reach their decisive command at one moment: each checks and prepares for itself, which takes
// different times, and waits before the command for all others that still can come.
type Gate struct {
	mu      sync.Mutex
	missing int
	open    chan struct{}
}

// gateMax bounds the wait for others: one that is slow to prepare must not hold up the others.
const gateMax = 30 * time.Second

// NewGate makes a gate for so many.
func NewGate(members int) *Gate { return &Gate{missing: members, open: make(chan struct{})} }

func (g *Gate) arrive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.missing--; g.missing == 0 {
		close(g.open)
	}
}

type gateKey struct{}

// member is one of those for whom a gate was made.
type member struct {
	gate *Gate
	once sync.Once
}

// WithGate makes ctx that of one member. The function that it returns says that this one does not come any more, or has come.
func WithGate(ctx context.Context, g *Gate) (inner context.Context, leave func()) {
	m := &member{gate: g}
	return context.WithValue(ctx, gateKey{}, m), func() { m.once.Do(g.arrive) }
}

// Together waits until all others of the gate are here too, or do not come. Without a gate it returns at once.
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
