package interval

import "time"

// Effort is the CPU usage of the threads that drove the load in one Interval, and the CPU time they had to wait for.
type Effort struct {
	// BusiestNanos is the CPU time of the thread that used most, WaitedNanos the longest time that a runnable thread waited for a
	// CPU.
	BusiestNanos int64 `json:"busiest_ns,omitempty"`
	WaitedNanos  int64 `json:"waited_ns,omitempty"`
	// StolenNanos is how long the hypervisor kept the busiest thread from a CPU: the stolen time, shared out by CPU time used.
	// ThrottledNanos is how long the limit of the generator's cgroup held a CPU back, averaged over all CPUs.
	StolenNanos    int64 `json:"stolen_ns,omitempty"`
	ThrottledNanos int64 `json:"throttled_ns,omitempty"`
}

const (
	// saturatedShare of a CPU leaves a thread no time to wait.
	saturatedShare = 0.95
	// starvedShare: waiting for a CPU for this share of an interval can make every latency in it too long by as much.
	starvedShare = 0.05
	// effortLengthMin: a shorter interval holds too few time slices of a scheduler for a share.
	effortLengthMin = int64(100 * time.Millisecond)
)

// Saturated reports whether one thread of the generator was busy all the time, so that the generator and not the device
// may have been the limit.
func (iv *Interval) Saturated() bool {
	return iv.LengthNanos >= effortLengthMin && float64(iv.BusiestNanos) >= saturatedShare*float64(iv.LengthNanos)
}

// Starved reports whether the generator lacked CPU time, so that latencies include its own waits and operations started
// late: a thread waited for a CPU, or CPU time was stolen or throttled. A stall of the generator is in StalledNanos.
func (iv *Interval) Starved() bool {
	limit := starvedShare * float64(iv.LengthNanos)
	return iv.LengthNanos >= effortLengthMin && float64(iv.LackedNanos()) >= limit
}

// LackedNanos is the longest of the times without a CPU.
func (e *Effort) LackedNanos() int64 { return max(e.WaitedNanos, e.StolenNanos, e.ThrottledNanos) }

// Join adds the effort of other threads in the same time on the same machine.
func (e *Effort) Join(o Effort) {
	e.BusiestNanos = max(e.BusiestNanos, o.BusiestNanos)
	e.WaitedNanos = max(e.WaitedNanos, o.WaitedNanos)
	e.StolenNanos = max(e.StolenNanos, o.StolenNanos)
	e.ThrottledNanos = max(e.ThrottledNanos, o.ThrottledNanos)
}
