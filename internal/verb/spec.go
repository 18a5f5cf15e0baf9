package verb

import (
	"maps"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/load"
)

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

// Staggering says when the VMs of a load start after each other.
type Staggering struct {
	Gap  time.Duration // between the starts of two VMs
	Last time.Duration // when the last VM starts, after the first
	Held time.Duration // for how long the step waits for starts
}

// Staggered deals the starts of so many VMs over the span of the load. factor is that of the rehearsal, 1 in a full run.
//
// It is what X-Ray does: fewer than two VMs start at once, gaps are whole seconds, rounded down, so that ten seconds for 75
// VMs are none at all, and after the last start a further gap is waited for where it still fits into the span, as with 40
// VMs in 60 s. A rehearsal drops a gap that scales to less than a second, and rounds no other.
func (l LoadSpec) Staggered(vms int, factor float64) Staggering {
	if vms < 2 || l.Stagger <= 0 {
		return Staggering{}
	}
	gap := l.Stagger / time.Duration(vms-1)
	if factor > 0 && factor < 1 {
		if gap.Seconds() < staggerTolerance*factor {
			return Staggering{}
		}
		return Staggering{Gap: gap, Last: gap * time.Duration(vms-1), Held: l.Stagger}
	}
	gap = gap.Truncate(time.Second)
	s := Staggering{Gap: gap, Last: gap * time.Duration(vms-1)}
	s.Held = s.Last
	if s.Held+gap <= l.Stagger {
		s.Held += gap
	}
	return s
}

// staggerTolerance is the least gap of a scenario in seconds that a rehearsal keeps: a scaled span is rounded to
// milliseconds, which must not drop a gap of just a second.
const staggerTolerance = 0.95

// prefillDepthPerNode is how many writes a prefill keeps in flight on each node, as X-Ray has it.
const prefillDepthPerNode = 4

// OptionPrefillDepth is the workload option that carries the queue depth of a prefill to its generator.
const OptionPrefillDepth = "prefill_iodepth"

// WithPrefillDepth returns options with that of a prefill by job file added.
func WithPrefillDepth(options map[string]string, kind load.Kind, depth int) map[string]string {
	if !kind.JobFiles {
		return options
	}
	options = maps.Clone(options)
	if options == nil {
		options = map[string]string{}
	}
	options[OptionPrefillDepth] = strconv.Itoa(depth)
	return options
}

// PrefillDepth shares the writes in flight of a node among the VMs that prefill there at the same time.
func (l LoadSpec) PrefillDepth(vms, nodes int) int {
	if l.MaxConcurrent == 0 || vms == 0 || nodes == 0 {
		return prefillDepthPerNode
	}
	perNode := (min(vms, l.MaxConcurrent) + nodes - 1) / nodes
	return max(1, prefillDepthPerNode/perNode)
}
