package blockdev

import (
	"cmp"
	"slices"
)

// Extent is a range of a file, in bytes.
type Extent struct{ Offset, Length int64 }

func (e Extent) end() int64 { return e.Offset + e.Length }

// TotalBytes adds up extents; what lies in several of them counts once.
func TotalBytes(extents []Extent) (total int64) {
	for _, e := range merged(extents) {
		total += e.Length
	}
	return total
}

// overlap adds up the bytes that the two lists have in common. The lists need not be in order, and what lies
// in several extents of one list counts once.
func overlap(wanted, given []Extent) int64 {
	wanted, given = merged(wanted), merged(given)
	var total int64
	for len(wanted) > 0 && len(given) > 0 {
		w, g := wanted[0], given[0]
		total += max(0, min(w.end(), g.end())-max(w.Offset, g.Offset))
		if w.end() < g.end() {
			wanted = wanted[1:]
		} else {
			given = given[1:]
		}
	}
	return total
}

// merged puts extents in order and joins those that touch.
func merged(extents []Extent) []Extent {
	sorted := slices.Clone(extents)
	slices.SortFunc(sorted, func(a, b Extent) int { return cmp.Compare(a.Offset, b.Offset) })
	var joined []Extent
	for _, e := range sorted {
		if e.Length <= 0 {
			continue
		}
		if last := len(joined) - 1; last >= 0 && e.Offset <= joined[last].end() {
			joined[last].Length = max(joined[last].end(), e.end()) - joined[last].Offset
			continue
		}
		joined = append(joined, e)
	}
	return joined
}
