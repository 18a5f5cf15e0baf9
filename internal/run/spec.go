package run

import "time"

// LoadSpec says which load to start. All VMs of the workload's group take part.
type LoadSpec struct {
	Workload string
	Prefill  bool
	Runtime  time.Duration // of each VM, counted from its own start; 0: to completion
	// Stagger spreads the starts over this span, as staggered says.
	Stagger time.Duration
	// MaxConcurrent is how many VMs run at a time; 0: all.
	MaxConcurrent int
	// Timeout is how long one VM may take when MaxConcurrent is set; 0: no bound.
	Timeout time.Duration
	Seed    string // "" derives the seed from the run's
	Async   bool   // the step does not wait for the end; for the plan only
}

// staggering says when the VMs of a load start after each other.
type staggering struct {
	gap  time.Duration // between the starts of two VMs
	last time.Duration // when the last VM starts, after the first
	held time.Duration // for how long the step waits for starts
}

// staggered deals the starts of so many VMs over the span of the load. factor is that of the rehearsal, 1 in a full run.
//
// It is what X-Ray does: fewer than two VMs start at once, gaps are whole seconds, rounded down, so that ten seconds for 75
// VMs are none at all, and after the last start a further gap is waited for where it still fits into the span, as with 40
// VMs in 60 s. A rehearsal drops a gap that stands for less than a second, and rounds no other.
func (l LoadSpec) staggered(vms int, factor float64) staggering {
	if vms < 2 || l.Stagger <= 0 {
		return staggering{}
	}
	gap := l.Stagger / time.Duration(vms-1)
	if factor > 0 && factor < 1 {
		if gap.Seconds() < staggerTolerance*factor {
			return staggering{}
		}
		return staggering{gap: gap, last: gap * time.Duration(vms-1), held: l.Stagger}
	}
	gap = gap.Truncate(time.Second)
	s := staggering{gap: gap, last: gap * time.Duration(vms-1)}
	s.held = s.last
	if s.held+gap <= l.Stagger {
		s.held += gap
	}
	return s
}

// staggerTolerance is the least gap of a scenario in seconds that a rehearsal keeps: a scaled span is rounded to
// milliseconds, which must not drop a gap of just a second.
const staggerTolerance = 0.95
