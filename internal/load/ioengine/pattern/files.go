package pattern

import (
	"cmp"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
)

// FileOrder chooses the file of the next operation where that is not simply the next one. Of more files than openfiles
// allows, only so many are in use: the first ones that have something left to do, as in fio, which opens another file
// when it has done with one.
type FileOrder struct {
	kind  string
	count int64 // operations on one file before another is chosen
	used  int   // openfiles
	key   uint64
	hot   Hotspots

	n       uint64 // choices made
	left    int64  // operations on the current file
	current int
}

// NewFileOrder returns nil for files that are used in turn, all of them.
func NewFileOrder(f fiojob.FileService, openFiles, streams int, key uint64) *FileOrder {
	o := &FileOrder{kind: cmp.Or(f.Kind, "roundrobin"), count: max(1, f.Count), key: key, used: streams, current: -1}
	if openFiles > 0 && openFiles < streams {
		o.used = openFiles
	}
	if streams <= 1 || o.kind == "roundrobin" && o.count == 1 && o.used == streams {
		return nil
	}
	hotKey := load.Key(key, 1)
	switch o.kind {
	case "zipf":
		o.hot = NewZipf(f.Parameter, uint64(streams), hotKey)
	case "pareto":
		o.hot = NewPareto(f.Parameter, uint64(streams), hotKey)
	case "normal":
		o.hot = NewNormal(f.Parameter, uint64(streams), hotKey)
	}
	return o
}

// next returns the stream of the next operation, or -1 when all have done their part.
func (o *FileOrder) next(streams []Stream) int {
	if o.left > 0 && streams[o.current].Left > 0 {
		o.left--
		return o.current
	}
	var at int
	switch o.kind {
	case "sequential":
		at = o.following(streams, 0)
	case "roundrobin":
		at = o.following(streams, o.current+1)
	case "random":
		at = o.open(streams, int(load.DrawBelow(o.key, o.n, uint64(o.used))))
	default:
		at = o.following(streams, int(o.hot.draw(o.key, o.n)))
	}
	if at < 0 {
		return -1
	}
	o.n++
	o.current, o.left = at, o.count-1
	return at
}

// open returns the i-th of the files in use, counted round where there are fewer.
func (o *FileOrder) open(streams []Stream, i int) int {
	open := 0
	for k := range streams {
		if streams[k].Left > 0 {
			open++
		}
	}
	if open == 0 {
		return -1
	}
	i %= min(open, o.used)
	for k := range streams {
		if streams[k].Left > 0 {
			if i == 0 {
				return k
			}
			i--
		}
	}
	return -1
}

// following returns the first file in use from one on, going round.
func (o *FileOrder) following(streams []Stream, from int) int {
	first, open := -1, 0
	for k := range streams {
		if streams[k].Left <= 0 {
			continue
		}
		if k >= from {
			return k
		}
		if first < 0 {
			first = k
		}
		if open++; open == o.used {
			break
		}
	}
	return first
}
