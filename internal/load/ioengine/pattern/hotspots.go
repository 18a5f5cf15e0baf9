package pattern

import (
	"math"
	"math/bits"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/load"
)

// Hotspots skews random places: some blocks are touched far more often than others. Ranks of curves (zipf, pareto,
// normal) are scattered over the window by a permutation, so that hot blocks do not lie together; zones lie in order.
type Hotspots struct {
	Kind      hotKind
	exponent  float64 // pareto: rank = blocks·u^exponent
	deviation float64 // normal: of the uniform part, as a share of the blocks
	zipf      zipf
	zones     []hotZone
	blocks    uint64
	scatter   permutation
	shift     uint64 // of all blocks, so that the hottest lies at the requested centre
}

type hotKind uint8

const (
	HotNone hotKind = iota
	hotPareto
	hotZipf
	hotNormal
	hotZoned
)

func (h *Hotspots) draw(key, n uint64) uint64 {
	var rank uint64
	switch h.Kind {
	case hotPareto:
		rank = uint64(float64(h.blocks) * math.Pow(load.DrawUnit(key, n), h.exponent))
	case hotZipf:
		rank = h.zipf.draw(key, n)
	case hotNormal:
		rank = h.normal(key, n)
	case hotZoned:
		return h.zone(load.Draw(key, n))
	}
	block := h.scatter.at(min(rank, h.blocks-1)) + h.shift
	if block >= h.blocks {
		block -= h.blocks
	}
	return block
}

// Centre puts the block of the hottest rank at a share of the window; fio puts 1 at its start.
func (h *Hotspots) Centre(hottest uint64, share float64) {
	to := uint64(share*float64(h.blocks)) % h.blocks
	h.shift = (to + h.blocks - h.scatter.at(min(hottest, h.blocks-1))) % h.blocks
}

// NewPareto: the share f of the hottest blocks gets f^a of the accesses with a = log(1−h)/log(h), so that h = 0.2 is
// "80 % of the accesses go to 20 % of the blocks" (the self-similar distribution of Gray et al.: Quickly Generating
// Billion-Record Synthetic Databases, SIGMOD 1994). With h above 0.5 the last ranks are the hot ones, and less so:
// 0.8 is the same formula and not the mirror image of 0.2.
func NewPareto(h float64, blocks, key uint64) Hotspots {
	return Hotspots{
		Kind: hotPareto, exponent: math.Log(h) / math.Log(1-h), blocks: blocks,
		scatter: newPermutation(blocks, key),
	}
}

// NewNormal: ranks lie around the middle one, as widely as fio 3.33 spreads them: its distances from the middle have
// the variance (1/12 + d²)/12 of the blocks squared, which is a bell of deviation 1/12 plus a uniform part as wide as the
// the requested deviation d; above 50 % it stays as wide as at 50 %. So normal:10 has a deviation of 8.8 % of the
// blocks, and no value makes it narrower than 8.3 %. A bell of exactly d would be another working set for the same file.
func NewNormal(percent float64, blocks, key uint64) Hotspots {
	return Hotspots{
		Kind: hotNormal, deviation: min(percent, 50) / 100, blocks: blocks, scatter: newPermutation(blocks, key),
	}
}

func (h *Hotspots) normal(key, n uint64) uint64 {
	// The inverse of the distribution function is infinite at 0, which is drawn once in 2⁵³.
	bell := math.Sqrt2 / 12 * math.Erfinv(2*load.DrawUnit(key, 2*n)-1)
	place := 0.5 + bell + h.deviation*(load.DrawUnit(key, 2*n+1)-0.5)
	if !(place >= 0 && place < 1) {
		place = load.DrawUnit(key, 2*n) // farther out than the window: anywhere
	}
	return uint64(place * float64(h.blocks))
}

// hotZone is a part of the window: draws up to upTo go to blocks first … first+blocks−1.
type hotZone struct {
	upTo          uint64
	first, blocks uint64
}

// NewZones: sizes count from the start of the window, in bytes (zoned_abs) or percent. The smallest zone is one block. A
// zone that begins behind the end of the window has no place; then ok is false, unless nothing goes there.
func NewZones(d *syntax.Distribution, direction int, blocks uint64, align, window int64) (h Hotspots, ok bool) {
	h = Hotspots{Kind: hotZoned, blocks: blocks}
	zones := d.Zones[direction]
	ends := percentEnds(zones, blocks)
	if d.Kind == "zoned_abs" {
		ends = byteEnds(zones, align, window)
	}
	access, first := 0, uint64(0)
	for i, end := range ends {
		next := min(uint64(end), blocks)
		if zones[i].AccessPercent > 0 {
			if first >= blocks {
				return h, false
			}
			access += zones[i].AccessPercent
			upTo := uint64(math.MaxUint64)
			if access < 100 {
				upTo = uint64(float64(access) / 100 * math.MaxUint64)
			}
			h.zones = append(h.zones, hotZone{upTo: upTo, first: first, blocks: max(1, next-first)})
		}
		first = next
	}
	return h, true
}

// percentEnds returns where zones end, in blocks.
func percentEnds(zones []syntax.DistributionZone, blocks uint64) []float64 {
	var ends []float64
	percent := 0.0
	for _, z := range zones {
		percent += z.SizePercent
		ends = append(ends, percent/100*float64(blocks))
	}
	return ends
}

// byteEnds does the same for zones in bytes. Those without a size divide what the others leave.
func byteEnds(zones []syntax.DistributionZone, align, window int64) []float64 {
	rest, open := window, 0
	for _, z := range zones {
		if rest -= z.SizeBytes; z.SizeBytes == 0 {
			open++
		}
	}
	var ends []float64
	bytes := 0.0
	for _, z := range zones {
		size := float64(z.SizeBytes)
		if z.SizeBytes == 0 {
			size = float64(max(0, rest)) / float64(open)
		}
		bytes += size
		ends = append(ends, bytes/float64(align))
	}
	return ends
}

// zone maps a draw to a block. What is left of the draw within its zone is uniform too and chooses the block.
func (h *Hotspots) zone(draw uint64) uint64 {
	var from uint64
	for i := range h.zones {
		z := &h.zones[i]
		if draw <= z.upTo {
			high, low := bits.Mul64(draw-from, z.blocks)
			place, _ := bits.Div64(high, low, z.upTo-from)
			return z.first + min(place, z.blocks-1)
		}
		from = z.upTo + 1
	}
	return 0
}
