//go:build !linux

package program

import "github.com/braggdev/bragg/internal/interval"

// effort is available on Linux only.
type effort struct{}

func (effort) lap(int) interval.Effort { return interval.Effort{} }
