package pattern

import "github.com/braggdev/bragg/internal/load"

// Deck deals the blocks of a window in random order, each exactly once per pass: fio's random map. Where block sizes
// are mixed, the window is tiled so that the sizes come in the intended shares and nothing is left out or done twice;
// fio instead cuts operations short where blocks were done before, which changes the sizes that are tested.
//
// The window is cut into stripes as long as the largest block. Each stripe belongs to one size and holds as many tiles
// of it as fit; what is left over, and the end of the window, is tiled with the smallest size. Which stripes belong to
// which size is random and changes with every pass.
type Deck struct {
	key         uint64
	plain       bool // one size: tile numbers are block numbers
	stripe      int64
	stripeCount uint64
	classes     []tileClass
	total       uint64

	// Reads are dealt from the front and writes from the back, so that the n-th read of a pass does not depend on how
	// many writes came before it.
	pass        uint64
	front, back uint64
	tiles       permutation
	stripes     permutation
}

// tileClass is a run of tile numbers with one size.
type tileClass struct {
	first       uint64 // number of the first tile
	size        int64
	perStripe   uint64
	firstStripe uint64
	inner       int64 // where the tiles begin in their stripe
	absolute    bool  // inner counts from the window's start: the end of the window
}

// NewDeck makes the deck of a window.
func NewDeck(window int64, s *Sizes, key uint64) *Deck {
	d := &Deck{key: key, plain: s.Fixed()}
	if d.plain {
		d.stripe = s.Smallest
		d.total = uint64(window / s.Smallest)
		d.shuffle()
		return d
	}
	d.stripe = stripeBytes(window, s)
	d.stripeCount = uint64(window / d.stripe)
	counts := stripesBySize(d.stripeCount, d.stripe, s)
	var stripe uint64
	i := 0
	s.Each(func(size int64, _ float64) {
		d.addClass(tileClass{size: size, perStripe: uint64(d.stripe / size), firstStripe: stripe}, counts[i])
		rest := d.stripe % size
		left := tileClass{size: s.Smallest, perStripe: uint64(rest / s.Smallest), firstStripe: stripe, inner: d.stripe - rest}
		d.addClass(left, counts[i])
		stripe += counts[i]
		i++
	})
	end := int64(d.stripeCount) * d.stripe
	d.addClass(tileClass{size: s.Smallest, perStripe: uint64((window - end) / s.Smallest), inner: end, absolute: true}, 1)
	d.shuffle()
	return d
}

func (d *Deck) addClass(c tileClass, stripes uint64) {
	if stripes == 0 || c.perStripe == 0 {
		return
	}
	c.first = d.total
	d.classes = append(d.classes, c)
	d.total += stripes * c.perStripe
}

// stripeBytes is the largest size, or the least common multiple of all sizes where the window holds many of those.
func stripeBytes(window int64, s *Sizes) int64 {
	multiple := s.Smallest
	s.Each(func(size int64, _ float64) {
		if multiple > 0 && multiple <= window/64 {
			multiple = multiple / GCD(multiple, size) * size
		} else {
			multiple = 0
		}
	})
	if multiple > 0 && multiple <= window/64 {
		return multiple
	}
	return s.Largest
}

// GCD is the greatest common divisor.
func GCD(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// stripesBySize divides the stripes so that the numbers of tiles come near the shares of operations: a size gets
// stripes in proportion to its share over its tiles per stripe, rounded by largest remainder.
func stripesBySize(stripes uint64, stripe int64, s *Sizes) []uint64 {
	var weights []float64
	var sum float64
	s.Each(func(size int64, share float64) {
		w := share / float64(stripe/size)
		weights = append(weights, w)
		sum += w
	})
	counts := make([]uint64, len(weights))
	var given uint64
	for i, w := range weights {
		weights[i] = w / sum * float64(stripes)
		counts[i] = uint64(weights[i])
		weights[i] -= float64(counts[i])
		given += counts[i]
	}
	for ; given < stripes; given++ {
		top := 0
		for i := range weights {
			if weights[i] > weights[top] {
				top = i
			}
		}
		counts[top]++
		weights[top]--
	}
	return counts
}

// shuffle begins the pass d.pass.
func (d *Deck) shuffle() {
	key := load.Key(d.key, d.pass)
	d.tiles = newPermutation(d.total, load.Key(key, keyTiles))
	if !d.plain {
		d.stripes = newPermutation(max(1, d.stripeCount), load.Key(key, keyStripes))
	}
	d.front, d.back = 0, 0
}

// next deals one block for reading (front) or writing.
func (d *Deck) next(front bool) (offset, size int64) {
	if d.spent() {
		d.restart()
	}
	var tile uint64
	if front {
		tile = d.front
		d.front++
	} else {
		d.back++
		tile = d.total - d.back
	}
	tile = d.tiles.at(tile)
	if d.plain {
		return int64(tile) * d.stripe, d.stripe
	}
	return d.place(tile)
}

func (d *Deck) place(tile uint64) (offset, size int64) {
	c := &d.classes[0]
	for i := len(d.classes) - 1; i > 0; i-- {
		if tile >= d.classes[i].first {
			c = &d.classes[i]
			break
		}
	}
	tile -= c.first
	if c.absolute {
		return c.inner + int64(tile)*c.size, c.size
	}
	stripe := d.stripes.at(c.firstStripe + tile/c.perStripe)
	return int64(stripe)*d.stripe + c.inner + int64(tile%c.perStripe)*c.size, c.size
}

// spent reports whether all cards of a pass are dealt.
func (d *Deck) spent() bool { return d.front+d.back >= d.total }

// restart shuffles the cards, unless none was dealt.
func (d *Deck) restart() {
	if d.front+d.back == 0 {
		return
	}
	d.pass++
	d.shuffle()
}
