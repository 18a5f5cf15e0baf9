package libvirt

import (
	"context"
	"sync"
)

// together shares surveys among callers who want one at the same time: each look at a host is a process and often a
// connection of ssh, and whole groups of VMs are dialled at once. The zero value is ready for use.
type together struct {
	mu   sync.Mutex
	next *outlook      // that has not begun yet; nil: nobody waits for one
	turn chan struct{} // holds one token while a survey is made; made by the first caller
}

// outlook is a survey that several callers wait for. What it holds is valid when done is closed.
type outlook struct {
	done    chan struct{}
	survey  *survey
	err     error
	abandon bool // whoever made it gave up, which is no reason for the others
}

// survey returns what look finds, called by this caller or by another one but never before this call: a VM that was powered
// on before is seen so. Nobody may change it.
func (g *together) survey(ctx context.Context, look func(context.Context) (*survey, error)) (*survey, error) {
	for {
		g.mu.Lock()
		o, mine := g.next, g.next == nil
		if mine {
			o = &outlook{done: make(chan struct{})}
			g.next = o
		}
		if g.turn == nil {
			g.turn = make(chan struct{}, 1)
		}
		g.mu.Unlock()
		if mine {
			g.make(ctx, o, look)
			return o.survey, o.err
		}
		select {
		case <-o.done:
			if !o.abandon {
				return o.survey, o.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// make waits for the survey that is being made, and makes the next.
func (g *together) make(ctx context.Context, o *outlook, look func(context.Context) (*survey, error)) {
	defer close(o.done)
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		o.err = context.Cause(ctx)
	}
	g.mu.Lock()
	g.next = nil // whoever comes from now on wants a later one
	g.mu.Unlock()
	if o.err == nil {
		o.survey, o.err = look(ctx)
	}
	o.abandon = o.err != nil && ctx.Err() != nil
}
