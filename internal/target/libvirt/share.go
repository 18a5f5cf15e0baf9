package libvirt

import (
	"context"
	"sync"
)

// sharedSurvey batches callers who want a survey at the same time: each survey is several processes per host, and whole groups of
// VMs are dialled at once. The zero value is ready for use.
type sharedSurvey struct {
	mu   sync.Mutex
	next *batch        // that has not begun yet; nil: there is none
	turn chan struct{} // holds one token while a survey is made; made by the first caller
}

// batch is a survey that several callers wait for. Its result is valid when done is closed.
type batch struct {
	done      chan struct{}
	survey    *survey
	err       error
	cancelled bool // the caller that made it gave up, and the others try again
}

// get returns a survey made by this caller or by another one, but begun after this call: it includes what was done before, such as
// powering a VM on. It is read-only.
func (g *sharedSurvey) get(ctx context.Context, look func(context.Context) (*survey, error)) (*survey, error) {
	for {
		g.mu.Lock()
		o, mine := g.next, g.next == nil
		if mine {
			o = &batch{done: make(chan struct{})}
			g.next = o
		}
		if g.turn == nil {
			g.turn = make(chan struct{}, 1)
		}
		g.mu.Unlock()
		if mine {
			g.run(ctx, o, look)
			return o.survey, o.err
		}
		select {
		case <-o.done:
			if !o.cancelled {
				return o.survey, o.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// run waits for the survey that is being made, and makes the next.
func (g *sharedSurvey) run(ctx context.Context, o *batch, look func(context.Context) (*survey, error)) {
	defer close(o.done)
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		o.err = context.Cause(ctx)
	}
	g.mu.Lock()
	g.next = nil // later callers need a later survey
	g.mu.Unlock()
	if o.err == nil {
		o.survey, o.err = look(ctx)
	}
	o.cancelled = o.err != nil && ctx.Err() != nil
}
