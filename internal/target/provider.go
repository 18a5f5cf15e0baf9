package target

import (
	"context"
	"net"

	"github.com/braggdev/bragg/internal/trust"
)

// Provider makes Targets of one kind.
type Provider struct {
	Name    string // as spelled in target files
	Summary string // one sentence
	// MakesNodes: the provider makes its own nodes; the target file sets their number. Switching them affects no other user
	// and is allowed by default.
	MakesNodes bool
	// FindsNodes: the platform lists its nodes. Nodes of the target file, found by id or name, are optional: they add
	// addresses and BMCs, and come first in the order of node slices.
	FindsNodes bool
	Open       func(ctx context.Context, c Config, o OpenOptions) (Target, error)
}

// OpenOptions are the settings that a provider gets from this program rather than from the target file.
type OpenOptions struct {
	// Dir is the folder for data that must survive the controller: for the local target, the VMs themselves. It is created
	// if it is missing. After opening the same Dir again, Owned finds everything.
	Dir string
	// AgentCommand starts an agent on this machine; its configuration is appended as one argument. Empty: this program with
	// the agent's hidden command.
	AgentCommand []string
	// ServeAgent is the agent of a VM that exists only in memory: it serves one connection until that closes or ctx ends,
	// and has then ended all load on it.
	ServeAgent func(ctx context.Context, conn net.Conn, vm VM) error
	// Authority makes the identities of agents that are reached over a network. Nil if no VM is powered on: for inspecting
	// a target, and for removing what a dead run left.
	Authority *trust.Authority
	// AgentProgram returns the path of the agent binary for a platform such as "linux/amd64".
	AgentProgram func(platform string) (string, error)
	// Leases is the scope of leases of machines that exclude each other; "" (always, except in tests) is the scope of all
	// controllers.
	Leases string
}
