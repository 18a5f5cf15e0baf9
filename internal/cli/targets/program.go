package targets

import (
	"context"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/session"
)

// HiddenAgent is the command with which the local target starts this program again as the agent of a VM.
const HiddenAgent = "__agent"

// ServeAgent runs the agent of a VM on the local target.
func ServeAgent(ctx context.Context, p *console.Process) int {
	return agent.Command(ctx, p.Arguments[1:], agent.Program{
		Generators: session.Catalog().Generators.ByName(), Version: console.Version(), Stderr: p.Stderr,
	})
}

// Program is the information about this program that a session records and needs.
func Program(p *console.Process) session.Program {
	return session.Program{
		Version: console.Version(), CommandLine: append([]string{"bragg"}, p.Arguments...),
		AgentCommand: []string{p.Executable, HiddenAgent}, Executable: p.Executable, AgentDir: p.Getenv("BRAGG_AGENT_DIR"),
		Leases: p.Leases,
	}
}
