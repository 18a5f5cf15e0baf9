package cli

import (
	"context"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/session"
)

// hiddenAgent is the verb with which the local target starts this program again as the agent of a VM.
const hiddenAgent = "__agent"

func (p *Process) serveAgent(ctx context.Context) int {
	return agent.Command(ctx, p.Arguments[1:], agent.Program{
		Generators: session.Catalog().Generators, Version: version(), Stderr: p.Stderr,
	})
}
