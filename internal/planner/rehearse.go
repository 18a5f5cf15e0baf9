package planner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/unit"
)

// Bounds of a rehearsal.
const (
	rehearsalNodesMax     = 4
	rehearsalVMsMax       = 16
	rehearsalBlocksMin    = 64
	rehearsalBytesDefault = 2 << 30
	// rehearsalFreeDivisor: a rehearsal never takes more than this part of the free space.
	rehearsalFreeDivisor = 4
	// diskStep is what sizes of shrunk disks are rounded up to.
	diskStep = 1 << 20
)

// rehearsalCounts shrinks groups so that they have at most 16 VMs in all, and every group keeps at least one VM and one more for
// each time it grows. VMs are distributed fairly: small groups keep theirs, large ones share the rest. The result maps each count
// that a group goes through to its count in the rehearsal; growth stays growth.
func rehearsalCounts(groups []scenario.Group, counts map[string][]int) map[string]map[int]int {
	final := map[string]int{}
	total := 0
	for _, g := range groups {
		final[g.Name] = len(distinct(counts[g.Name]))
		total += final[g.Name]
	}
	for ; total < rehearsalVMsMax; total++ {
		poorest := ""
		for _, g := range groups {
			if final[g.Name] < slices.Max(counts[g.Name]) && (poorest == "" || final[g.Name] < final[poorest]) {
				poorest = g.Name
			}
		}
		if poorest == "" {
			break
		}
		final[poorest]++
	}
	out := map[string]map[int]int{}
	for _, g := range groups {
		out[g.Name] = scaleSeries(distinct(counts[g.Name]), final[g.Name])
	}
	return out
}

// scaleSeries maps the rising series onto 1…last, keeping proportions and strict growth.
func scaleSeries(series []int, last int) map[int]int {
	out := map[int]int{}
	full, before := series[len(series)-1], 0
	for i, n := range series {
		rest := len(series) - 1 - i // counts that must still be larger
		scaled := (n*last + full/2) / full
		scaled = min(max(scaled, before+1), last-rest)
		out[n], before = scaled, scaled
	}
	return out
}

func distinct(series []int) []int {
	s := slices.Clone(series)
	slices.Sort(s)
	return slices.Compact(s)
}

// groupShare is one group while the bytes of a rehearsal are shared out.
type groupShare struct {
	name   string
	copies int64 // VMs, and a copy for each snapshot
	full   int64 // bytes touched per VM, unshrunk
	least  int64 // bytes touched per VM when only the floors are left
	factor float64
}

// rehearsing scales a run down: fewer and smaller disks and VMs, shorter loads and waits.
type rehearsing struct{ workloads }

// rehearseSizes finds the size factor of each group: VMs that touch little data keep their size, the others share the rest
// of the bound equally. The floor of 64 blocks is lowered before the bound is exceeded; if one block per extent is too
// much, the plan does not fit.
func (c rehearsing) rehearseSizes() {
	bound := c.rehearsalBound()
	c.plan.Footprint.BoundBytes = bound
	shares := c.groupShares()
	blocks := rehearsalBlocksMin
	var full int64
	for i := range shares {
		full += shares[i].full * shares[i].copies
	}
	if full <= bound {
		c.applySizes(shares, blocks)
		return
	}
	var floors int64
	for ; ; blocks /= 2 {
		floors = 0
		for i := range shares {
			shares[i].least = c.touchedAt(shares[i].name, load.Scale{Factor: factorLeast, BlocksMin: blocks})
			floors += shares[i].least * shares[i].copies
		}
		if floors <= bound || blocks == 1 {
			break
		}
	}
	c.chooseFactors(shares, bound, blocks)
	c.applySizes(shares, blocks)
	if blocks < rehearsalBlocksMin {
		c.note("the bound of %s leaves room for only %d blocks per job extent instead of %d; --rehearse-size raises it",
			unit.FormatBytes(bound), blocks, rehearsalBlocksMin)
	}
	if floors > bound {
		c.unfitRehearsal(floors, bound)
	}
}

// factorTriesMax bounds the search for factors; the last try is the floors alone.
const factorTriesMax = 64

// chooseFactors finds factors with which all groups together stay below the bound. The generators round to blocks, so
// the first answer may be a little too large.
func (c rehearsing) chooseFactors(shares []groupShare, bound int64, blocks int) {
	share := waterLevel(shares, bound)
	for try := range factorTriesMax {
		if try == factorTriesMax-1 {
			share = 0
		}
		var total int64
		for i := range shares {
			s := &shares[i]
			s.factor = 1
			if s.full > 0 && share < float64(s.full) {
				s.factor = max(share/float64(s.full), factorLeast)
			}
			total += c.touchedAt(s.name, scaleOf(s.factor, blocks)) * s.copies
		}
		if total <= bound {
			return
		}
		share *= 0.95
	}
}

// unfitRehearsal reports that even the floors exceed the bound, and which bound would fit.
func (c rehearsing) unfitRehearsal(least, bound int64) {
	asked := cmp.Or(c.options.RehearseBytes, int64(rehearsalBytesDefault))
	allowed, hint := "--rehearse-size allows", "--rehearse-size "+exactSize(least)+" is the least that works"
	if bound < asked {
		allowed, hint = "a quarter of the free space is", "free some space"
	}
	c.unfit("space", c.inventory.Name, fmt.Sprintf("a rehearsal with one block per job extent touches at least %s and %s %s",
		unit.FormatBytes(least), allowed, unit.FormatBytes(bound)), hint)
}

// exactSize prints a size as an option that reads back as the same number.
func exactSize(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprint(n)
}

// factorLeast means "as small as the floors allow".
const factorLeast = 1e-9

func scaleOf(factor float64, blocks int) load.Scale {
	if factor >= 1 {
		return load.Scale{}
	}
	return load.Scale{Factor: factor, BlocksMin: blocks}
}

func (c rehearsing) rehearsalBound() int64 {
	bound := cmp.Or(c.options.RehearseBytes, int64(rehearsalBytesDefault))
	if free := c.inventory.FreeBytes; free > 0 {
		bound = min(bound, free/rehearsalFreeDivisor/int64(max(1, c.inventory.Replication)))
	}
	return bound
}

func (c rehearsing) groupShares() []groupShare {
	snapshots := c.snapshotCounts()
	var shares []groupShare
	for _, g := range c.plan.Groups {
		shares = append(shares, groupShare{name: g.Name, factor: 1, full: c.plan.touchedBytes(g.Name),
			copies: int64(g.CountFinal) * int64(1+snapshots[g.Name])})
	}
	return shares
}

// waterLevel returns the share per copy at which all groups together take the bound.
func waterLevel(shares []groupShare, bound int64) float64 {
	low, high := 0.0, float64(bound)
	for range 60 {
		level := (low + high) / 2
		var total float64
		for _, s := range shares {
			total += float64(s.copies) * max(float64(s.least), min(float64(s.full), level))
		}
		if total > float64(bound) {
			high = level
		} else {
			low = level
		}
	}
	return low
}

// touchedAt returns how many bytes a VM of the group would touch with the given scale.
func (c rehearsing) touchedAt(group string, scale load.Scale) int64 {
	c.setScale(group, scale)
	return c.plan.touchedBytes(group)
}

// setScale shrinks the disks of a group and the workloads whose data is on them, and has the generators plan again.
func (c rehearsing) setScale(group string, scale load.Scale) {
	g := &c.plan.Groups[slices.IndexFunc(c.plan.Groups, func(g plan.Group) bool { return g.Name == group })]
	var members []*workloadPlan
	var blockMax int64 = diskStep // a prefill writes blocks of this size
	for _, w := range c.sc.Workloads {
		if p := c.plan.workloads[w.Name]; p.dataGroup() == group {
			members = append(members, p)
			if p.loadPlan != nil {
				blockMax = max(blockMax, p.loadPlan.BlockBytesMax)
			}
		}
	}
	for i, d := range g.Disks {
		g.Disks[i].SizeBytes = shrunkDisk(d.ScenarioBytes, scale, blockMax)
	}
	for _, p := range members {
		p.scale = scale
		c.planWorkload(p, false)
	}
}

// shrunkDisk leaves room for the minimum extent after any scaled offset.
func shrunkDisk(size int64, scale load.Scale, blockMax int64) int64 {
	if scale.Factor == 0 {
		return size
	}
	short := int64(float64(size)*scale.Factor) + int64(scale.BlocksMin)*blockMax
	short = (short + diskStep - 1) / diskStep * diskStep
	return min(size, short)
}

func (c rehearsing) applySizes(shares []groupShare, blocks int) {
	r := c.rehearsal()
	for _, s := range shares {
		c.setScale(s.name, scaleOf(s.factor, blocks))
		r.SizeFactor[s.name] = s.factor
		if s.factor <= factorLeast { // the floors decide
			r.SizeFactor[s.name] = float64(c.plan.touchedBytes(s.name)) / float64(s.full)
		}
		g, _ := c.plan.Group(s.name)
		r.Counts[s.name] = [2]int{g.ScenarioCountFinal, g.CountFinal}
	}
	// Report errors that only the shrunk sizes cause.
	for _, w := range c.sc.Workloads {
		c.planWorkload(c.plan.workloads[w.Name], true)
	}
}

// rehearsal returns the record of factors, which is created on first use.
func (c *draft) rehearsal() *result.Rehearsal {
	if c.plan.Rehearsal == nil {
		c.plan.Rehearsal = &result.Rehearsal{Asked: c.options.Rehearse, TimeFactor: 1,
			SizeFactor: map[string]float64{}, Counts: map[string][2]int{}, VCPUs: map[string][2]int{}, RAMBytes: map[string][2]int64{},
			Nodes: [2]int{len(c.nodes), len(c.inventory.Nodes)}}
	}
	return c.plan.Rehearsal
}

// note adds a remark to the plan and, in a rehearsal, to its record.
func (c *draft) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.plan.Notes = append(c.plan.Notes, text)
	if c.plan.Rehearsal != nil {
		c.plan.Rehearsal.Notes = append(c.plan.Rehearsal.Notes, text)
	}
}

// chooseTimes finds the single time factor with which the run phase takes about the requested time. Floors are part of the
// search; if they alone take longer, the factor is the plain ratio and the plan reports the resulting duration.
func (c rehearsing) chooseTimes() {
	if c.options.Rehearse == 0 {
		return
	}
	r := c.rehearsal()
	asked, full := c.options.Rehearse, c.runLength(1)
	switch {
	case full <= asked:
		c.factor = 1
	case c.runLength(factorLeast) > asked:
		factor := asked.Seconds() / full.Seconds()
		c.note("floors (3 s a workload, 1 s a wait) lengthen the run phase to about %s instead of %s",
			unit.FormatDuration(c.runLength(factor)), unit.FormatDuration(asked))
		c.factor = factor
	default:
		low, high := 0.0, 1.0
		for range 50 {
			middle := (low + high) / 2
			if c.runLength(middle) > asked {
				high = middle
			} else {
				low = middle
			}
		}
		c.factor = low
	}
	r.TimeFactor = c.factor
	for i := range c.steps {
		c.steps[i].Step = c.steps[i].Rebind(c.factor)
	}
	c.keepLasting()
	for _, p := range c.plan.workloads {
		p.runtime = 0
	}
	c.noteUses()
	// The description of each load in the plan, including its fio command, must match the scaled runtime.
	c.planned = c.factor
	for _, p := range c.plan.workloads {
		c.planWorkload(p, false)
	}
}

// runLength estimates the run phase with a time factor.
func (c *script) runLength(factor float64) time.Duration {
	_, lengths := c.times(factor, false)
	var sum time.Duration
	for i, b := range c.steps {
		if b.phase == plan.Run && b.branch == 0 {
			sum += lengths[i]
		}
	}
	return sum
}
