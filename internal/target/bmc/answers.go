package bmc

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// answersPoll is how often Answers checks whether this program has cut the power of the polled node.
const answersPoll = time.Second

// Answers checks, for the survey of one node, that another node passes ask. A node that this program powered off, before or
// during the check, counts as passed: waiting for it would take a full network timeout. A node that another party powered
// off counts as missing, and so does one that does not answer although its cut was refused or had no effect.
func (n *Nodes) Answers(ctx context.Context, nodeID string, ask func(context.Context) error) error {
	if n.HasCutPower(ctx, nodeID) {
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
			if failed != nil && n.HasCutPower(ctx, nodeID) {
				return nil
			}
			return failed
		case <-look.C:
			if n.HasCutPower(ctx, nodeID) {
				cancel()
				<-done
				return nil
			}
		}
	}
}

// HasCutPower reports whether this program cut the power of a node that is still off. While the node is being switched, it
// waits for the end of that operation.
func (n *Nodes) HasCutPower(ctx context.Context, nodeID string) bool {
	s, err := n.of(nodeID)
	if err != nil || !n.count.fell(nodeID) {
		return false
	}
	state, err := s.State(ctx)
	return err == nil && state == target.PowerOff
}
