// Package extent computes with byte ranges of devices and files: the ranges that jobs touch, and their parts that were never
// written. It does no I/O.
//
//	extents, in any order ──Merge──▶ in order, joined
//	extents ──Bytes, Common, Without──▶ distinct bytes of one list, of two; the rest of one
package extent

import (
	"cmp"
	"slices"
)

// Extent is a byte range of one device or file. An empty range is kept; one of negative length is dropped.
type Extent struct {
	Device string `json:"device"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"` // 0 also if the size is unknown
	Writes bool   `json:"writes"`
}

// End is the first byte after the range.
func (e Extent) End() int64 { return e.Offset + e.Length }

// Merge joins adjacent and overlapping ranges of one device, separately for reads and writes, and sorts by device and offset. The
// result is never nil.
func Merge(list []Extent) []Extent {
	list = slices.DeleteFunc(slices.Clone(list), func(e Extent) bool { return e.Length < 0 })
	slices.SortFunc(list, func(a, b Extent) int {
		if a.Writes != b.Writes {
			if a.Writes {
				return -1
			}
			return 1
		}
		return place(a, b)
	})
	merged := []Extent{}
	for _, e := range list {
		if n := len(merged) - 1; n >= 0 {
			last := &merged[n]
			if last.Device == e.Device && last.Writes == e.Writes && e.Offset <= last.End() {
				last.Length = max(last.Length, e.End()-last.Offset)
				continue
			}
		}
		merged = append(merged, e)
	}
	slices.SortStableFunc(merged, place)
	return merged
}

func place(a, b Extent) int {
	return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Offset, b.Offset))
}

// flat is Merge with reads and writes as one.
func flat(list []Extent) []Extent {
	list = slices.Clone(list)
	for i := range list {
		list[i].Writes = false
	}
	return Merge(list)
}

// Bytes counts distinct bytes: bytes in several extents count once.
func Bytes(list []Extent) (bytes int64) {
	for _, e := range flat(list) {
		bytes += e.Length
	}
	return bytes
}

// Common counts the distinct bytes that two lists have in common.
func Common(a, b []Extent) int64 { return Bytes(a) - Bytes(Without(a, b)) }

// Without returns the parts of list that are not in taken, merged, with reads and writes as one.
func Without(list, taken []Extent) []Extent {
	var left []Extent
	taken = slices.DeleteFunc(flat(taken), func(e Extent) bool { return e.Length == 0 }) // an empty one would split a range
	for _, e := range flat(list) {
		for len(taken) > 0 && (taken[0].Device < e.Device || taken[0].Device == e.Device && taken[0].End() <= e.Offset) {
			taken = taken[1:]
		}
		at := e.Offset
		for _, t := range taken {
			if t.Device != e.Device || t.Offset >= e.End() {
				break
			}
			if t.Offset > at {
				left = append(left, Extent{Device: e.Device, Offset: at, Length: t.Offset - at})
			}
			at = max(at, t.End())
		}
		if at < e.End() {
			left = append(left, Extent{Device: e.Device, Offset: at, Length: e.End() - at})
		}
	}
	return left
}

// PerDevice counts the distinct bytes of each device.
func PerDevice(list []Extent) map[string]int64 {
	out := map[string]int64{}
	for _, e := range flat(list) {
		out[e.Device] += e.Length
	}
	return out
}
