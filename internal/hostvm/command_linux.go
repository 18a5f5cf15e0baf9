package hostvm

import (
	"context"
	"os"
)

// Command is the body of the hidden verb: it serves over standard input and output. Agents are started from the program
// that runs, whose file is gone by then.
func Command(ctx context.Context, args []string, version string) int {
	return Serve(ctx, Program{
		Version: version, Arguments: args, In: os.Stdin, Out: os.Stdout, Errors: os.Stderr, AgentCommand: []string{"/proc/self/exe"},
	})
}
