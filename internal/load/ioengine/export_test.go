package ioengine

import (
	"time"

	"github.com/braggdev/bragg/internal/load/ioengine/verifying"
)

// SetDrainMax changes how long hanging operations are waited for, and returns what changes it back.
func SetDrainMax(d time.Duration) (restore func()) {
	before := drainMax
	drainMax = d
	return func() { drainMax = before }
}

// SetWindowUnits changes how much of a region verification looks at together, and returns what changes it back.
func SetWindowUnits(n int64) (restore func()) {
	before := verifying.WindowUnits
	verifying.WindowUnits = n
	return func() { verifying.WindowUnits = before }
}
