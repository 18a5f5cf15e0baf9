package bmc

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// answersPoll is how often the power of a node is read that this program cuts while it is being asked something.
const answersPoll = time.Second

// Answers makes sure, for the survey of one node, that another does what ask wants of it. It returns nil also for a node
// without power that this program took it from, before or while it was asked, which otherwise takes as long as a network
// takes to give up. A node that somebody else switched off is missing, as is one whose cut was refused or had no effect and
// that does not answer.
func (n *Nodes) Answers(ctx context.Context, nodeID string, ask func(context.Context) error) error {
	if n.HasCut(ctx, nodeID) {
		return nil
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error // valid when done is closed
	done := make(chan struct{})
	go func() {
		defer close(done)
		failed = ask(asking)
	}()
	look := time.NewTicker(answersPoll)
	defer look.Stop()
	for {
		select {
		case <-done:
			if failed != nil && n.HasCut(ctx, nodeID) {
				return nil
			}
			return failed
		case <-look.C:
			if n.HasCut(ctx, nodeID) {
				cancel()
				<-done
				return nil
			}
		}
	}
}

// HasCut reports whether this program took the power of a node, which has none since. While the node is being switched, the
// answer waits for the end of that.
func (n *Nodes) HasCut(ctx context.Context, nodeID string) bool {
	s, err := n.of(nodeID)
	if err != nil || !n.count.fell(nodeID) {
		return false
	}
	state, err := s.State(ctx)
	return err == nil && state == target.PowerOff
}
