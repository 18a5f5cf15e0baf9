//go:build !linux

package hostvm

import (
	"context"
	"fmt"
	"os"

	"github.com/braggdev/bragg/internal/diag"
)

// Command reports that hosts must run Linux.
func Command(context.Context, []string, string) int {
	fmt.Fprintln(os.Stderr, "host: only Linux hosts can run VMs as processes")
	return diag.ExitUnavailable
}
