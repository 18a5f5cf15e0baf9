// Command bragg-agent is what runs inside a VM: the agent with the generators, nothing else.
package main

import (
	"context"
	"os"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/load/builtin"
)

// version is set by the build.
var version = "devel"

func main() {
	os.Exit(agent.Command(context.Background(), os.Args[1:], agent.Program{
		Generators: builtin.ByName(), Version: version, Stderr: os.Stderr,
	}))
}
