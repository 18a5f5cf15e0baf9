package session

import (
	"context"
	"net"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/target"
)

// serveInMemory is the agent of a VM that exists in memory only. Whatever engine a workload wants, its operations go
// nowhere: a simulated target must not touch this machine's devices.
func serveInMemory(ctx context.Context, conn net.Conn, vm target.VM) error {
	nowhere := ioengine.Generator{Backend: "null"}
	generators := map[string]load.Generator{}
	for name := range Catalog().Generators {
		generators[name] = nowhere
	}
	return agent.Serve(ctx, conn, agent.Options{Generators: generators, VM: vm.Name})
}
