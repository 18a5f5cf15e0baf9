package nutanix

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/agentlink"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
	"github.com/braggdev/bragg/internal/trust"
	"github.com/braggdev/bragg/internal/wait"
)

// agents are the connections to agents of VMs.
type agents struct {
	cluster *cluster
	link    *agentlink.Dialer
	surveys sharedSurvey // of callers who dial
}

func newAgents(c *cluster, authority *trust.Authority) *agents {
	a := &agents{cluster: c, surveys: sharedSurvey{every: surveyEvery / time.Duration(max(1, c.quicken))}}
	a.link = &agentlink.Dialer{Authority: authority, AddressOf: a.AddressOf, MayAnswer: a.mayAnswer}
	return a
}

// DialAgent connects to the agent of a VM, as soon as it answers, and verifies that it is the agent of that VM.
func (a *agents) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	return a.link.DialAgent(ctx, vm)
}

// AddressOf returns the address that was given to a VM, or that Prism saw it use.
func (a *agents) AddressOf(ctx context.Context, vm target.VM) (string, error) {
	if len(vm.Addresses) > 0 {
		return vm.Addresses[0], nil
	}
	s, err := a.surveys.get(ctx, a.cluster.survey)
	if err != nil {
		return "", err
	}
	one := s.vms[vm.ID]
	if one == nil {
		return "", errGone
	}
	if known := one.Addresses(); len(known) > 0 {
		return known[0], nil
	}
	return "", errors.New("prism knows no address of it yet")
}

// mayAnswer returns why an agent cannot answer; a target.StoppedError where dialling again is pointless.
func (a *agents) mayAnswer(ctx context.Context, vm target.VM, _ bool) error {
	noticed := time.Now()
	s, err := a.surveys.get(ctx, a.cluster.survey)
	if err != nil {
		return err
	}
	switch one := s.vms[vm.ID]; {
	case one == nil:
		return &target.StoppedError{VM: vm.Name, Reason: "Prism does not have it any more", At: noticed}
	case one.Power != ahv.On:
		return &target.StoppedError{VM: vm.Name, Reason: fmt.Sprintf("Prism calls it %q", one.Power), At: noticed}
	}
	return nil
}

// surveyEvery is the shortest time between two surveys for those who dial: whole groups of VMs are dialled at once, several times a
// second each.
const surveyEvery = time.Second

// sharedSurvey is one survey for all who want one at the same time.
type sharedSurvey struct {
	every time.Duration // the shortest time between two

	mu   sync.Mutex
	next *batch // that has not begun yet; nil: there is none
	last time.Time
	turn sync.Mutex // held while a survey is made
}

// batch is a survey that several callers wait for. Its result is valid when done is closed.
type batch struct {
	done   chan struct{}
	survey *survey
	err    error
}

// get returns a survey that began after this call: it includes what was done before, such as powering a VM on. It is read-only.
func (g *sharedSurvey) get(ctx context.Context, look func(context.Context) (*survey, error)) (*survey, error) {
	for {
		g.mu.Lock()
		b, mine := g.next, g.next == nil
		if mine {
			b = &batch{done: make(chan struct{})}
			g.next = b
		}
		g.mu.Unlock()
		if mine {
			g.run(ctx, b, look)
			return b.survey, b.err
		}
		select {
		case <-b.done:
			if b.err == nil || ctx.Err() != nil {
				return b.survey, b.err
			}
			// The caller that made it may have given up: this one makes its own.
			return look(ctx)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (g *sharedSurvey) run(ctx context.Context, b *batch, look func(context.Context) (*survey, error)) {
	defer close(b.done)
	g.turn.Lock()
	defer g.turn.Unlock()
	if pause := g.every - time.Since(g.last); pause > 0 {
		b.err = wait.For(ctx, pause)
	}
	g.mu.Lock()
	g.next = nil // later callers need a later survey
	g.mu.Unlock()
	g.last = time.Now()
	if b.err == nil {
		b.survey, b.err = look(ctx)
	}
}
