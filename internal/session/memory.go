package session

import (
	"cmp"
	"context"
	"net"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/target"
)

// serveInMemory is the agent of a VM that exists in memory only. Whatever generator a workload wants, an imitation of it
// runs: a simulated target must not touch this machine's devices.
func serveInMemory(ctx context.Context, conn net.Conn, vm target.VM) error {
	generators := map[string]load.Generator{}
	for _, k := range Catalog().Generators {
		generators[k.Name] = cmp.Or(k.Imitation, k.Generator)
	}
	return agent.Serve(ctx, conn, agent.Options{Generators: generators, VM: vm.Name})
}
