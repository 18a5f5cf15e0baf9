package verb

import (
	"maps"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/load"
)

// LoadSpec describes the load to start. All VMs of the workload's group take part.
type LoadSpec struct {
	Workload string
	Prefill  bool
	Runtime  time.Duration // of each VM, counted from its own start; 0: to completion
	// Stagger spreads the starts over this time, see Staggered.
	Stagger time.Duration
	// MaxConcurrent is how many VMs run at a time; 0: all.
	MaxConcurrent int
	// Timeout is how long one VM may take when MaxConcurrent is set; 0: no bound.
	Timeout time.Duration
	Seed    string // "" derives the seed from that of the run
	// Restart: on a VM that is lost and comes back, it starts again for the rest of Runtime, which is set.
	Restart bool
	Async   bool // the step does not wait for the end; for the plan only
}

// Settling describes a wait until a load is steady.
type Settling struct {
	Workload string
	Window   time.Duration // that has to be steady
	Most     time.Duration // how long to wait
}

// SettlingWindowMin is the shortest window in which a load is judged: a second for each of the fewest values.
const SettlingWindowMin = 20 * time.Second

// Staggering is the timing of staggered starts of the VMs of a load.
type Staggering struct {
	Gap  time.Duration // between the starts of two VMs
	Last time.Duration // when the last VM starts, after the first
	Held time.Duration // how long the step waits for starts
}

// Staggered distributes the starts of vms VMs over the Stagger time. factor is the time factor of the rehearsal, 1 in a full run.
//
// It follows X-Ray: a single VM starts immediately; gaps are whole seconds, rounded down, so that ten seconds for 75 VMs give no
// gap; after the last start, it waits for a further gap if that still fits, as with 40 VMs in 60 s. A rehearsal drops a gap of
// less than a second in the scenario, and does not round others.
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

// staggerTolerance is the smallest gap of a scenario, in seconds, that a rehearsal keeps: scaled times are rounded to
// milliseconds, which must not drop a gap of exactly a second.
const staggerTolerance = 0.95

// prefillDepthPerNode is how many writes a prefill keeps in flight on each node, as in X-Ray.
const prefillDepthPerNode = 4

// OptionPrefillDepth is the workload option that carries the queue depth of a prefill to its generator.
const OptionPrefillDepth = "prefill_iodepth"

// WithPrefillDepth returns options with the queue depth of a prefill by job file added.
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
