// Command bragg-agent is what runs inside a VM: the agent with the generators, nothing else. In images that bragg makes
// it is the first process too.
package main

import (
	"context"
	"os"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/guest"
	"github.com/braggdev/bragg/internal/load/builtin"
)

// version is set by the build.
var version = "devel"

func main() {
	if guest.IsInit() {
		os.Exit(guest.Init())
	}
	os.Exit(agent.Command(context.Background(), os.Args[1:], agent.Program{
		Generators: builtin.ByName(), Version: version, Stderr: os.Stderr,
	}))
}
