package source

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
)

// DuplicateLinesMin is the number of consecutive lines from which on a repeated run counts as a duplicate.
const DuplicateLinesMin = 8

// Duplicate is a run of lines of the product that occurs elsewhere too.
type Duplicate struct {
	Path  string
	Line  int
	Lines int    // without blank lines and comments
	Again string // path of another file, or the same, with the first of these lines
}

// line is a line that counts.
type line struct {
	text   string
	number int
}

// Duplicates finds runs of at least DuplicateLinesMin lines that occur more than once in the product: indentation, blank lines,
// comments and imports are ignored, tests and generated files left out. Each occurrence is one duplicate. The longest come first.
func (t *Tree) Duplicates() []Duplicate {
	type place struct{ file, at int }
	seed := maphash.MakeSeed()
	lines := make([][]line, len(t.Files))
	first, repeated := map[uint64]place{}, map[uint64]place{} // windows by their hashes: where first, and where again
	hashes := make([][]uint64, len(t.Files))
	for i, f := range t.Files {
		if f.Test || f.Generated {
			continue
		}
		lines[i] = t.counted(f)
		for at := 0; at+DuplicateLinesMin <= len(lines[i]); at++ {
			h := window(seed, lines[i][at:at+DuplicateLinesMin])
			hashes[i] = append(hashes[i], h)
			if _, known := first[h]; !known {
				first[h] = place{i, at}
			} else if _, known := repeated[h]; !known {
				repeated[h] = place{i, at}
			}
		}
	}
	var all []Duplicate
	for i, list := range hashes {
		for at := 0; at < len(list); at++ {
			other, again := repeated[list[at]]
			if !again {
				continue
			}
			begin := at
			for at+1 < len(list) && has(repeated, list[at+1]) {
				at++
			}
			if other == (place{i, begin}) {
				other = first[list[begin]]
			}
			all = append(all, Duplicate{Path: t.Files[i].Path, Line: lines[i][begin].number, Lines: at - begin + DuplicateLinesMin, Again: t.Files[other.file].Path})
			at += DuplicateLinesMin - 1
		}
	}
	slices.SortStableFunc(all, func(a, b Duplicate) int { return cmp.Compare(b.Lines, a.Lines) })
	return all
}

func has[K comparable, V any](m map[K]V, key K) bool {
	_, ok := m[key]
	return ok
}

func window(seed maphash.Seed, lines []line) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, l := range lines {
		_, _ = h.WriteString(l.text) // never fails, by its documentation
		_ = h.WriteByte('\n')
	}
	return h.Sum64()
}

// counted returns the lines of a file behind its imports, without blank lines and comments.
func (t *Tree) counted(f File) (list []line) {
	begin := t.Position.Position(f.Tree.Name.End()).Line
	for _, i := range f.Tree.Imports {
		begin = max(begin, t.Position.Position(i.End()).Line)
	}
	number := 0
	for text := range strings.Lines(string(f.Text)) {
		number++
		text = strings.TrimSpace(text)
		if number > begin && text != "" && text != ")" && !strings.HasPrefix(text, "//") {
			list = append(list, line{text, number})
		}
	}
	return list
}
