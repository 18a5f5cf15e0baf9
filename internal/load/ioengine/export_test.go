package ioengine

import "time"

// SetDrainMax changes how long hanging operations are waited for, and returns what changes it back.
func SetDrainMax(d time.Duration) (restore func()) {
	before := drainMax
	drainMax = d
	return func() { drainMax = before }
}
