package hostvm

import (
	"context"
	"os"
)

// Command implements the hidden command: it serves over standard input and output. It starts agents from the running
// program, whose file may have been removed by then.
func Command(ctx context.Context, args []string, version string) int {
	return Serve(ctx, Program{
		Version: version, Arguments: args, In: os.Stdin, Out: os.Stdout, Errors: os.Stderr, AgentCommand: []string{"/proc/self/exe"},
	})
}
