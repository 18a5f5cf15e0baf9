package extent_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/extent"
)

func draw(t *rapid.T, name string) []extent.Extent {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) extent.Extent {
		return extent.Extent{
			Device: rapid.SampledFrom([]string{"", "d", "e"}).Draw(t, "device"),
			Offset: rapid.Int64Range(0, 50).Draw(t, "offset"), Length: rapid.Int64Range(-1, 20).Draw(t, "length"),
			Writes: rapid.Bool().Draw(t, "writes"),
		}
	}), 0, 8).Draw(t, name)
}

// bytesOf lists what the extents hold, byte by byte, and whether it is written.
type byteOf struct {
	device string
	at     int64
	writes bool
}

func bytesOf(list []extent.Extent, split bool) map[byteOf]bool {
	held := map[byteOf]bool{}
	for _, e := range list {
		for at := e.Offset; at < e.End(); at++ {
			held[byteOf{e.Device, at, split && e.Writes}] = true
		}
	}
	return held
}

// Merging changes no byte, keeps reads and writes apart, and leaves nothing that touches.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := draw(t, "list")
		before := slices.Clone(list)
		merged := extent.Merge(list)
		if !slices.Equal(list, before) {
			t.Fatalf("the list became %v", list)
		}
		want, got := bytesOf(list, true), bytesOf(merged, true)
		for b := range want {
			if !got[b] {
				t.Fatalf("%v of %v is not in %v", b, list, merged)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%v has %d bytes, %v %d", list, len(want), merged, len(got))
		}
		for i, a := range merged {
			if i > 0 && (a.Device < merged[i-1].Device || a.Device == merged[i-1].Device && a.Offset < merged[i-1].Offset) {
				t.Fatalf("not in order: %v", merged)
			}
			for _, b := range merged[i+1:] {
				if a.Device == b.Device && a.Writes == b.Writes && a.Offset <= b.End() && b.Offset <= a.End() {
					t.Fatalf("%v and %v touch in %v", a, b, merged)
				}
			}
		}
		if again := extent.Merge(merged); !slices.Equal(again, merged) {
			t.Fatalf("merged again, %v is %v", merged, again)
		}
	})
}

// What is counted and what is left is what looking at each byte gives.
func TestBytesCommonWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		inA, inB := bytesOf(a, false), bytesOf(b, false)
		var common int64
		left := bytesOf(extent.Without(a, b), false)
		for at := range inA {
			if inB[at] {
				common++
			}
			if left[at] == inB[at] {
				t.Fatalf("%v of %v without %v: left %v", at, a, b, left[at])
			}
		}
		if want := int64(len(inA)); extent.Bytes(a) != want || extent.Bytes(extent.Merge(a)) != want || int64(len(left)) != want-common {
			t.Fatalf("%v has %d bytes and without %v %d, want %d and %d", a, extent.Bytes(a), b, len(left), want, want-common)
		}
		if x, y := extent.Common(a, b), extent.Common(b, a); x != common || y != common {
			t.Fatalf("%v and %v have %d or %d bytes in common, want %d", a, b, x, y, common)
		}
	})
}

// What is left is whole: nothing that takes no bytes splits it.
func TestWithoutSplitsForBytesOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		left := extent.Without(a, b)
		if merged := extent.Merge(left); !slices.Equal(merged, left) {
			t.Fatalf("%v without %v: left %v, which is %v", a, b, left, merged)
		}
	})
}
