package cli

import (
	"context"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/session"
)

// hiddenAgent is the verb with which the local target starts this program again as the agent of a VM.
const hiddenAgent = "__agent"

func serveAgent(ctx context.Context, p *console.Process) int {
	return agent.Command(ctx, p.Arguments[1:], agent.Program{
		Generators: session.Catalog().Generators, Version: console.Version(), Stderr: p.Stderr,
	})
}
