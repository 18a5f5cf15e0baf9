// Command bragg-lab builds hypervisor hosts in namespaces of one machine, to try real VMs without hardware.
package main

import (
	"context"
	"os"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/lab/command"
)

func main() { os.Exit(command.Main(context.Background(), console.New("bragg-lab"))) }
