package analysis

import (
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/result"
)

// A load is at its baseline in a second if, over the five seconds from that second on, the median of IOPS is not below and the
// median of the mean response time is not above the bounds of the window before the power loss. The bounds are the 5th percentile
// of that window's IOPS or 95 % of its median, whichever is lower, and the 95th percentile of its response times or 105 % of its
// median, whichever is higher. The load has recovered when it has left the baseline and then been at it for ten seconds.
const (
	baselineMin     = 10 // seconds of load before the loss
	baselineMax     = 60
	baselineStretch = 5
	baselineHold    = 10
	baselineMargin  = 0.05
)

// backToBaseline compares the loads that ran over the loss with the window before it.
func (r *Recoveries) backToBaseline(c *powerLoss, grid *Grid, windows []result.Window) result.RecoveryPhase {
	p := result.RecoveryPhase{Name: phaseBaseline}
	at := c.operation.FromNanos
	from, to := at-baselineMax*int64(CellLength), r.nextLoss(c)
	running := map[string]bool{}
	for _, s := range r.timeline.Starts {
		if s.FromNanos < at && at < s.ToNanos {
			running[s.Workload] = true
			from, to = max(from, s.FromNanos), min(to, s.ToNanos)
		}
	}
	if len(running) == 0 {
		p.Unknown = "no load during the power loss"
		return p
	}
	if w, ok := windowBefore(windows, at); ok {
		from = max(from, w.FromNanos)
	}
	tracks := grid.Tracks(func(t *Track) bool {
		return running[t.Workload] && !t.Prefill && (len(c.resumed) > 0 || !c.vms[t.VM])
	})
	p.Note = "VMs on other nodes"
	if len(c.resumed) > 0 || len(c.vms) == 0 {
		p.Note = "all VMs"
	}
	b := newBaseline(grid, tracks, from, at)
	if b.known < baselineMin {
		p.Unknown = fmt.Sprintf("fewer than %d seconds of load before the loss", baselineMin)
		if len(tracks) == 0 {
			p.Unknown = "no load on other nodes"
		}
		p.Note = ""
		return p
	}
	back, state := b.back(grid.Span(at, to))
	switch state {
	case baselineKept:
		p.AtNanos, p.Note = &at, p.Note+", never left baseline"
	case baselineBack:
		moment := grid.OriginNanos + int64(back)*int64(CellLength)
		moment = max(moment, at)
		p.AtNanos, p.Note = &moment, p.Note+", to the second"
	default:
		p.Unknown, p.Note = "not reached before the end of the load or the next power cut (needs 10 s at baseline)", ""
	}
	return p
}

// nextLoss is when the run next takes the power of any node, or the end of the record.
func (r *Recoveries) nextLoss(c *powerLoss) int64 {
	next := r.timeline.EndNanos
	for i := range r.losses {
		// Nodes that are switched together are one loss.
		if at := r.losses[i].operation.FromNanos; at > *c.operation.ToNanos {
			next = min(next, at)
		}
	}
	return next
}

// windowBefore returns the window of the run phase that ends with the step at the given time.
func windowBefore(windows []result.Window, at int64) (result.Window, bool) {
	for i := len(windows) - 1; i >= 0; i-- {
		if windows[i].FromNanos <= at-int64(CellLength) {
			return windows[i], true
		}
	}
	return result.Window{}, false
}

type baseline struct {
	grid      *Grid
	tracks    []*Track
	known     int // seconds with a rate
	low, high float64
}

func newBaseline(grid *Grid, tracks []*Track, from, at int64) *baseline {
	b := &baseline{grid: grid, tracks: tracks}
	iops, response := b.lines(grid.Span(from, at-int64(CellLength)/2)) // not the second of the loss
	iops, response = knownOf(iops), knownOf(response)
	b.known = len(iops)
	if b.known == 0 {
		return b
	}
	b.low = min(rank(iops, baselineMargin), (1-baselineMargin)*medianOf(iops))
	b.high = math.Inf(1)
	if len(response) > 0 {
		b.high = max(rank(response, 1-baselineMargin), (1+baselineMargin)*medianOf(response))
	}
	return b
}

// lines are the IOPS and the mean response time of all tracks together, second by second.
func (b *baseline) lines(in Span) (iops, response []float64) {
	if len(b.tracks) == 0 {
		return nil, nil
	}
	one := func(q Quantity, how string) []float64 {
		lines := make([]Line, len(b.tracks))
		for i, t := range b.tracks {
			lines[i] = b.grid.VMLine(t.VM, []*Track{t}, q, in)
		}
		return Combine(lines, how).Values
	}
	return one(IOPS, "sum"), one(Response, "mean")
}

// knownOf returns the values that are not missing, sorted.
func knownOf(values []float64) []float64 {
	known := slices.DeleteFunc(slices.Clone(values), isMissing)
	slices.Sort(known)
	return known
}

// rank returns the value of a quantile by the nearest rank.
func rank(sorted []float64, q float64) float64 {
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}

type baselineState int

const (
	baselineAway baselineState = iota
	baselineKept
	baselineBack
)

// back returns the cell from which on the load is at its baseline again.
func (b *baseline) back(in Span) (cell int, state baselineState) {
	iops, response := b.lines(in)
	n := len(iops) - baselineStretch + 1
	if n < baselineHold-baselineStretch+1 {
		return 0, baselineAway
	}
	left, since := false, -1
	for i := range n {
		switch {
		case !b.holds(iops[i:i+baselineStretch], response[i:i+baselineStretch]):
			left, since = true, -1
		case left && since < 0 && b.holds(iops[i:i+1], response[i:i+1]):
			since = i
		}
		if since >= 0 && i-since >= baselineHold-baselineStretch {
			return in.From + since, baselineBack
		}
	}
	if !left {
		return 0, baselineKept
	}
	return 0, baselineAway
}

// holds reports whether a stretch is at the baseline. A second without data counts as one without operations.
func (b *baseline) holds(iops, response []float64) bool {
	rates := slices.Clone(iops)
	for i, v := range rates {
		if isMissing(v) {
			rates[i] = 0
		}
	}
	slices.Sort(rates)
	if medianOf(rates) < b.low {
		return false
	}
	times := knownOf(response)
	return len(times) == 0 || medianOf(times) <= b.high
}
