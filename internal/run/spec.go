package run

import "time"

// LoadSpec says which load to start. All VMs of the workload's group take part.
type LoadSpec struct {
	Workload string
	Prefill  bool
	Runtime  time.Duration // of each VM, counted from its own start; 0: to completion
	// Stagger spreads the starts over this span: with n VMs there are n−1 gaps.
	Stagger time.Duration
	// MaxConcurrent is how many VMs run at a time; 0: all.
	MaxConcurrent int
	// Timeout is how long one VM may take when MaxConcurrent is set; 0: no bound.
	Timeout time.Duration
	Seed    string // "" derives the seed from the run's
	Async   bool   // the step does not wait for the end; for the plan only
}
