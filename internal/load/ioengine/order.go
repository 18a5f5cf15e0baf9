package ioengine

import (
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/unit"
)

// order works out where the operations of one direction go in a region.
func (s *jobSpec) order(direction int, r region, key uint64) order {
	j := &s.job
	o := order{region: r, sizes: s.sizes[direction], sequel: s.sequel, align: s.align(direction)}
	if !s.random {
		o.skip, o.ends = j.Sequence, r.zoneBytes == 0
		return o
	}
	o.percent = min(max(j.PercentRandom[direction], 0), 100)
	if j.Sequence > 1 {
		o.hold, o.same = j.Sequence, j.RWSequencer == "identical"
	}
	o.hot, _ = s.hotspots(direction, &o, key) // zones were checked when the job was compiled
	return o
}

// align is what random offsets are a multiple of, from the start of their region.
func (s *jobSpec) align(direction int) int64 {
	if a := s.job.BlockAlign[direction]; a > 0 {
		return a
	}
	return s.sizes[direction].smallest
}

// mapped tells whether each block shall be touched exactly once per pass. As in fio, norandommap, an alignment of its
// own and a distribution that is not uniform draw freely, but for the generator that makes a map of its own (lfsr); here also operations that are only partly random, because
// the sequential ones would touch blocks again anyway.
func (s *jobSpec) mapped(direction int, o *order) bool {
	return s.random && (!s.job.NoRandomMap || s.job.LFSR) && s.sizes[direction].span == 0 && o.percent == 100 && o.hold <= 1 && o.hot.kind == hotNone &&
		o.align == s.sizes[direction].smallest
}

// tolerates tells whether failed operations of a direction are counted and passed over.
func (s *jobSpec) tolerates(d interval.Direction) bool {
	switch s.job.ContinueOnError {
	case "all", "io":
		return true
	case "read":
		return d == interval.Read
	case "write":
		return d == interval.Write
	}
	return false
}

// hotspots works out a distribution that is not uniform, for one direction in one region.
func (s *jobSpec) hotspots(direction int, o *order, key uint64) (h hotspots, ok bool) {
	d := &s.job.Distribution
	window := o.region.window()
	blocks := uint64((window-o.sizes.smallest)/o.align) + 1
	hottest := uint64(0)
	switch d.Kind {
	case "zipf":
		h = newZipf(d.Parameter, blocks, key)
	case "pareto":
		h = newPareto(d.Parameter, blocks, key)
		if d.Parameter > 0.5 {
			hottest = blocks - 1
		}
	case "normal":
		h, hottest = newNormal(d.Parameter, blocks, key), blocks/2
	case "zoned", "zoned_abs":
		return newZones(d, direction, blocks, o.align, window)
	}
	if d.HasCentre && h.kind != hotNone {
		h.centre(hottest, d.Centre)
	}
	return h, true
}

// checkZones refuses zones that lie behind the end of a region although operations should go there.
func (s *jobSpec) checkZones(r region) error {
	for d, active := range s.draws() {
		if !active || !s.random {
			continue
		}
		o := order{region: r, sizes: s.sizes[d], align: s.align(d)}
		if _, ok := s.hotspots(d, &o, 0); !ok {
			return fmt.Errorf("a zone of random_distribution begins behind the end of the region of %s", unit.FormatBytes(r.window()))
		}
	}
	return nil
}

// scaleZones makes the zones of zoned_abs smaller by the factor of a rehearsal, as all other sizes of its job are.
func (s *jobSpec) scaleZones(factor float64) {
	if factor <= 0 || factor >= 1 {
		return
	}
	for d, zones := range s.job.Distribution.Zones {
		zones = slices.Clone(zones)
		for i := range zones {
			if zones[i].SizeBytes > 0 {
				zones[i].SizeBytes = max(1, int64(math.Round(float64(zones[i].SizeBytes)*factor)))
			}
		}
		s.job.Distribution.Zones[d] = zones
	}
}

// sizesByOrder gives sequential and random operations of all directions the sizes of reads and of writes, as
// bs_is_seq_rand asks for.
func (s *jobSpec) sizesByOrder() {
	if !s.job.BlockByOrder {
		return
	}
	sequential, random := sizesOf(&s.job, fiojob.Read), sizesOf(&s.job, fiojob.Write)
	for d, active := range s.active() {
		switch {
		case active && s.random:
			s.sizes[d] = random
			s.sequel = sequential
		case active:
			s.sizes[d] = sequential
		}
	}
}

// drawnAs is the direction whose draws an operation has. A job with one direction has those of writes whatever it does, so
// that a job reads where another one in its place wrote.
func (s *jobSpec) drawnAs(direction int) int {
	others := s.draws()
	others[direction] = false
	if others == [interval.DirectionCount]bool{} {
		return int(interval.Write)
	}
	return direction
}
