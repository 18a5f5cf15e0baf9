//go:build !linux

package fio

import "github.com/braggdev/bragg/internal/interval"

// effort is available on Linux only.
type effort struct{}

func (effort) lap(int) interval.Effort { return interval.Effort{} }
