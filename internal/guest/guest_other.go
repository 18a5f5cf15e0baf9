//go:build !linux

package guest

import "github.com/braggdev/bragg/internal/diag"

// Init is for Linux only: on other systems, no program of Bragg is the first process.
func Init() int { return diag.ExitUnavailable }

// IsInit reports whether this process is the first one of a machine that package image made.
func IsInit() bool { return false }
