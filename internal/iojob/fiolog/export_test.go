package fiolog

import "time"

// SetWaitMax changes how long a load waits for files, and returns what changes it back.
func SetWaitMax(d time.Duration) (restore func()) {
	before := waitMax
	waitMax = d
	return func() { waitMax = before }
}
