package fiolog

import "time"

// SetFlushEvery changes how often the writer comes round, and returns what changes it back.
func SetFlushEvery(d time.Duration) (restore func()) {
	before := flushEvery
	flushEvery = d
	return func() { flushEvery = before }
}

// SetWaitMax changes how long a load waits for files, and returns what changes it back.
func SetWaitMax(d time.Duration) (restore func()) {
	before := waitMax
	waitMax = d
	return func() { waitMax = before }
}
