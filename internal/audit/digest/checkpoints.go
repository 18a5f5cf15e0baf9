package digest

import (
	"slices"

	"github.com/braggdev/bragg/internal/interval"
)

const (
	// dropShare of the rate before a checkpoint is the limit of a drop, and dropSamples the fewest samples in succession below it.
	dropShare   = 0.5
	dropSamples = 2
	// The rate before a checkpoint is the median of up to priorSamples, at least of priorFewest. With fewer than priorOperations in
	// each, a drop by half may be chance.
	priorSamples    = 30
	priorFewest     = 5
	priorOperations = 20
	// lateSamples is how late a counter may be seen to rise: the server is queried once per sample, and answers late under load. Drops
	// that begin as long after the last write of a checkpoint are those of its sync.
	lateSamples = 2
	dropsKept   = 16
	sampleMin   = int64(500e6)
)

// Checkpoints are those of the database of one stream, and the drops of the rate at them.
type Checkpoints struct {
	Count   int    // that began while the load ran
	Judged  int    // with a known rate before them
	Drops   []Drop // the first ones
	Dropped int    // checkpoints with at least one drop

	counter, writes int // numbers of gauges
	begun           float64
	recent          []sample // the last ones before the drop, if there is one
	prior           float64  // rate before the checkpoint; 0 if it is unknown
	at              int64
	watching        bool
	counted         bool // the checkpoint has a drop
	quiet           int  // samples without writes of the checkpoint
	low             []sample
}

// Drop is a time in which the rate was below half of that before the checkpoint. Rates are operations per second.
type Drop struct {
	CheckpointNanos, FromNanos, ToNanos int64
	Before, Mean                        float64
}

type sample struct {
	from, to int64
	count    float64
}

func (s *sample) rate() float64 { return s.count / (float64(s.to-s.from) / 1e9) }

// checkpointsOf is nil for an engine that does not count checkpoints.
func checkpointsOf(e interval.Engine) *Checkpoints {
	counter := e.GaugeMeant(interval.GaugeCheckpoints)
	if counter < 0 {
		return nil
	}
	return &Checkpoints{counter: counter, writes: e.GaugeMeant(interval.GaugeCheckpointWrites)}
}

func (c *Checkpoints) add(iv *interval.Interval) {
	if c == nil || iv.LengthNanos < sampleMin {
		return
	}
	s := sample{from: iv.StartNanos, to: iv.EndNanos()}
	for i := range iv.Directions {
		s.count += float64(iv.Directions[i].Operations)
	}
	if c.counter < len(iv.Gauges) && iv.Gauges[c.counter] > c.begun { // false of a gap, which is NaN
		c.begin(s.from, int(iv.Gauges[c.counter]-c.begun))
		c.begun = iv.Gauges[c.counter]
	}
	if c.watching {
		c.watch(s, c.writes >= 0 && c.writes < len(iv.Gauges) && iv.Gauges[c.writes] > 0)
	}
	if len(c.low) == 0 {
		c.remember(s)
	}
}

func (c *Checkpoints) remember(s sample) {
	if len(c.recent) == priorSamples+lateSamples {
		c.recent = slices.Delete(c.recent, 0, 1)
	}
	c.recent = append(c.recent, s)
}

// begin starts to watch the rate. A drop that already began with the previous checkpoint stays that one's.
func (c *Checkpoints) begin(at int64, count int) {
	c.Count += count
	if len(c.low) > 0 {
		return
	}
	late := c.recent[max(0, len(c.recent)-lateSamples):]
	c.at, c.watching, c.counted, c.quiet = at, true, false, 0
	if c.prior = priorOf(c.recent[:len(c.recent)-len(late)]); c.prior == 0 {
		return
	}
	c.Judged += count
	for _, s := range late {
		c.watch(s, true)
	}
	c.recent = c.recent[:len(c.recent)-len(c.low)]
}

// priorOf is the median of rates; 0 if they are too few to be judged.
func priorOf(list []sample) float64 {
	rates := make([]float64, len(list))
	var operations float64
	for i := range list {
		rates[i] = list[i].rate()
		operations += list[i].count
	}
	if len(list) < priorFewest || operations < priorOperations*float64(len(list)) {
		return 0
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// watch takes one sample during a checkpoint, or right after its last write.
func (c *Checkpoints) watch(s sample, writing bool) {
	if writing {
		c.quiet = 0
	} else {
		c.quiet++
	}
	if s.rate() < dropShare*c.prior {
		c.low = append(c.low, s)
		return
	}
	c.end()
	c.watching = c.quiet <= lateSamples
}

// end keeps the drop that ends, if it lasted.
func (c *Checkpoints) end() {
	d, dropped := c.drop()
	c.low = c.low[:0]
	if !dropped {
		return
	}
	if len(c.Drops) < dropsKept {
		c.Drops = append(c.Drops, d)
	}
	if !c.counted {
		c.Dropped++
	}
	c.counted = true
}

// All lists the drops, with one that lasted until the load ended.
func (c *Checkpoints) All() []Drop {
	if d, dropped := c.drop(); dropped {
		return append(slices.Clone(c.Drops), d)
	}
	return c.Drops
}

// drop is the one that goes on.
func (c *Checkpoints) drop() (Drop, bool) {
	if len(c.low) < dropSamples {
		return Drop{}, false
	}
	first, last := c.low[0], c.low[len(c.low)-1]
	count := 0.0
	for i := range c.low {
		count += c.low[i].count
	}
	whole := sample{first.from, last.to, count}
	return Drop{CheckpointNanos: c.at, FromNanos: first.from, ToNanos: last.to, Before: c.prior, Mean: whole.rate()}, true
}
