//go:build !unix

package target

import "os/exec"

// Apart does nothing: only the agent runs here.
func Apart(*exec.Cmd) {}
