// Command bragg-agent is what runs inside a VM: the agent with the generators, nothing else.
package main

import (
	"context"
	"os"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/guest"
	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/load/builtin"
)

// version is set by the build.
var version = "devel"

func main() {
	ctx, args := context.Background(), os.Args[1:]
	switch {
	case guest.IsInit():
		os.Exit(guest.Init())
	case len(args) > 0 && args[0] == hostvm.Verb:
		os.Exit(hostvm.Command(ctx, args[1:], version))
	}
	os.Exit(agent.Command(ctx, args, agent.Program{Generators: builtin.Generators().ByName(), Version: version, Stderr: os.Stderr}))
}
