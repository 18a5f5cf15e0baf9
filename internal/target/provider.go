package target

import (
	"context"
	"net"

	"github.com/braggdev/bragg/internal/trust"
)

// Provider makes Targets of one kind.
type Provider struct {
	Name    string // as target files spell it
	Summary string // one sentence
	// MakesNodes: the provider makes its own nodes; the target file says how many. Switching those affects no other user and is
	// allowed by default.
	MakesNodes bool
	Open       func(ctx context.Context, c Config, o OpenOptions) (Target, error)
}

// OpenOptions is what a provider needs of this program rather than of the target file.
type OpenOptions struct {
	// Dir is where a provider keeps what has to survive the controller: for the local target the VMs themselves. It is
	// made when it is missing. Opening the same Dir again finds everything with Owned.
	Dir string
	// AgentCommand starts an agent on this machine; its configuration is appended as one argument. Empty: this
	// program with the hidden verb of the agent.
	AgentCommand []string
	// ServeAgent is the agent of a VM that exists in memory only: it serves one connection until that closes or ctx
	// ends, with all load on it ended.
	ServeAgent func(ctx context.Context, conn net.Conn, vm VM) error
	// Authority makes the identities of agents that are reached over a network. Nil where nothing is powered on: to look
	// at a target, and to remove what a dead run left.
	Authority *trust.Authority
	// AgentProgram returns the path of the agent's program for a platform such as "linux/amd64".
	AgentProgram func(platform string) (string, error)
	// Leases names the leases of machines that exclude each other; "", as programs have it, are those of all controllers.
	Leases string
}
