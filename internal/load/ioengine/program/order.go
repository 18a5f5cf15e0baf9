package program

import (
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/unit"
)

// order works out where the operations of one direction go in a region.
func (s *Job) order(direction int, r pattern.Region, key uint64) pattern.Order {
	j := &s.Fio
	o := pattern.Order{Region: r, Sizes: s.Sizes[direction], Sequel: s.Sequel, Align: s.Align(direction)}
	if !s.Random {
		o.Skip, o.Ends = j.Sequence, r.ZoneBytes == 0
		return o
	}
	o.Percent = min(max(j.PercentRandom[direction], 0), 100)
	if j.Sequence > 1 {
		o.Hold, o.Same = j.Sequence, j.RWSequencer == "identical"
	}
	o.Own, o.Later = j.Places.OwnAlign, j.Places.NotFirst
	o.Hot, _ = s.hotspots(direction, &o, key) // zones were checked when the job was compiled
	return o
}

// Align is what random offsets are a multiple of, from the start of their region.
func (s *Job) Align(direction int) int64 {
	if a := s.Fio.BlockAlign[direction]; a > 0 {
		return a
	}
	return s.Sizes[direction].Smallest
}

// mapped reports whether each block shall be touched exactly once per pass. As in fio, norandommap, an alignment of its
// own and a distribution that is not uniform draw freely, but for the generator that makes a map of its own (lfsr); here also operations that are only partly random, because
// the sequential ones would touch blocks again anyway.
func (s *Job) mapped(direction int, o *pattern.Order) bool {
	return s.Random && (!s.Fio.NoRandomMap || s.Fio.LFSR) && s.Sizes[direction].Span == 0 && o.Percent == 100 && o.Hold <= 1 && o.Hot.Kind == pattern.HotNone &&
		o.Align == s.Sizes[direction].Smallest
}

// hotspots works out a distribution that is not uniform, for one direction in one region.
func (s *Job) hotspots(direction int, o *pattern.Order, key uint64) (h pattern.Hotspots, ok bool) {
	d := &s.Fio.Distribution
	window := o.Region.Window()
	blocks := uint64((window-o.Sizes.Smallest)/o.Align) + 1
	hottest := uint64(0)
	switch d.Kind {
	case "zipf":
		h = pattern.NewZipf(d.Parameter, blocks, key)
	case "pareto":
		h = pattern.NewPareto(d.Parameter, blocks, key)
		if d.Parameter > 0.5 {
			hottest = blocks - 1
		}
	case "normal":
		h, hottest = pattern.NewNormal(d.Parameter, blocks, key), blocks/2
	case "zoned", "zoned_abs":
		return pattern.NewZones(d, direction, blocks, o.Align, window)
	}
	if d.HasCentre && h.Kind != pattern.HotNone {
		h.Centre(hottest, d.Centre)
	}
	return h, true
}

// checkZones refuses zones that lie behind the end of a region although operations should go there.
func checkZones(s *Job, r pattern.Region) error {
	for d, active := range s.Draws() {
		if !active || !s.Random {
			continue
		}
		o := pattern.Order{Region: r, Sizes: s.Sizes[d], Align: s.Align(d)}
		if _, ok := s.hotspots(d, &o, 0); !ok {
			return fmt.Errorf("a zone of random_distribution begins behind the end of the region of %s", unit.FormatBytes(r.Window()))
		}
	}
	return nil
}

// scaleZones makes the zones of zoned_abs smaller by the factor of a rehearsal, as all other sizes of its job are.
func scaleZones(s *Job, factor float64) {
	if factor <= 0 || factor >= 1 {
		return
	}
	for d, zones := range s.Fio.Distribution.Zones {
		zones = slices.Clone(zones)
		for i := range zones {
			if zones[i].SizeBytes > 0 {
				zones[i].SizeBytes = max(1, int64(math.Round(float64(zones[i].SizeBytes)*factor)))
			}
		}
		s.Fio.Distribution.Zones[d] = zones
	}
}

// sizesByOrder gives sequential and random operations of all directions the sizes of reads and of writes, as
// bs_is_seq_rand asks for.
func sizesByOrder(s *Job) {
	if !s.Fio.BlockByOrder {
		return
	}
	sequential, random := pattern.SizesOf(&s.Fio, fiojob.Read), pattern.SizesOf(&s.Fio, fiojob.Write)
	for d, active := range s.Active() {
		switch {
		case active && s.Random:
			s.Sizes[d] = random
			s.Sequel = sequential
		case active:
			s.Sizes[d] = sequential
		}
	}
}

// drawnAs is the direction whose draws an operation has. A job with one direction has those of writes whatever it does, so
// that a job reads where another one in its place wrote.
func (s *Job) drawnAs(direction int) int {
	others := s.Draws()
	others[direction] = false
	if others == [interval.DirectionCount]bool{} {
		return int(interval.Write)
	}
	return direction
}
