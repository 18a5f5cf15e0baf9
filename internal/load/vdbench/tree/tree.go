// Package tree makes and uses the directory trees of vdbench's file systems (fsd): folders of a depth and width with files of drawn sizes.
//
//	Layout ──▶ names and sizes, pure
//	Tree   ──Format──▶ folders and files ──Take, Release──▶ which files exist and are in use
//	Drive  ──▶ threads of file workloads (fwd): operations by a rate, a skew, or as fast as possible
//
// Operations are blocking calls, one at a time per thread, as those of vdbench.
package tree

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/load"
)

// Share is one size of a distribution.
type Share struct {
	Bytes   int64
	Percent float64
}

// draw returns one of the sizes by a number in [0, 1).
func draw(shares []Share, u float64) int64 {
	for _, s := range shares {
		if u -= s.Percent / 100; u < 0 {
			return s.Bytes
		}
	}
	return shares[len(shares)-1].Bytes
}

// Layout is what a tree consists of.
type Layout struct {
	Depth, Width, Files int     // files of each folder that has files
	All                 bool    // every folder has files, and not only those at the bottom
	Sizes               []Share // of files
	Key                 uint64  // of the drawn sizes
}

// Bounds of one tree.
const (
	FoldersMax = 1_000_000
	FilesMax   = 10_000_000
)

// Folders is how many there are below the anchor, over the bound at most once.
func (l *Layout) Folders() (sum int) {
	level := 1
	for range l.Depth {
		if level *= l.Width; level > FoldersMax {
			return FoldersMax + 1
		}
		if sum += level; sum > FoldersMax {
			return FoldersMax + 1
		}
	}
	return sum
}

// first is the number of the first folder with files.
func (l *Layout) first() int {
	if l.All {
		return 0
	}
	bottom := 1
	for range l.Depth {
		bottom *= l.Width
	}
	return l.Folders() - bottom
}

// Count is how many files there are, over the bound at most once.
func (l *Layout) Count() int {
	folders := l.Folders()
	if folders > FoldersMax || l.Files > FilesMax/max(1, folders-l.first()) {
		return FilesMax + 1
	}
	return (folders - l.first()) * l.Files
}

// Size is that of a file, drawn once.
func (l *Layout) Size(file int) int64 {
	if len(l.Sizes) == 1 {
		return l.Sizes[0].Bytes
	}
	return draw(l.Sizes, load.DrawUnit(l.Key, uint64(file)))
}

// Bytes is the sum of all files.
func (l *Layout) Bytes() (sum int64) {
	if n := l.Count(); len(l.Sizes) == 1 {
		return int64(n) * l.Sizes[0].Bytes
	}
	for file := range l.Count() {
		sum += l.Size(file)
	}
	return sum
}

// Folder is the path of a folder below the anchor. They are numbered level by level.
func (l *Layout) Folder(n int) string {
	level, width := 1, l.Width
	for n >= width {
		n -= width
		width *= l.Width
		level++
	}
	parts := make([]string, level)
	for i := level - 1; i >= 0; i-- {
		parts[i] = fmt.Sprintf("d%d_%d", i+1, n%l.Width+1)
		n /= l.Width
	}
	return strings.Join(parts, "/")
}

// File is the path of a file below the anchor.
func (l *Layout) File(n int) string {
	return filepath.Join(l.Folder(l.first()+n/l.Files), fmt.Sprintf("f%07d", n%l.Files+1))
}
