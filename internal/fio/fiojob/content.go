package fiojob

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Content describes the data that a job writes. Options that are not set are zero, except the chunk.
type Content struct {
	CompressPercent    int    // of each chunk: the part that is fully compressible
	CompressChunkBytes int64  // 0: a chunk is a whole block
	DedupePercent      int    // of the blocks: repeat an earlier one
	DedupeMode         string // "" and "repeat": any earlier block; "working_set": one of a set of DedupeSetPercent of the job's size
	DedupeSetPercent   int
	DedupeGlobal       bool   // all jobs share the set
	Pattern            []byte `json:",omitempty"` // repeated from the start of each block; with CompressPercent, fills the compressible part
}

const (
	compressChunkDefault = 512
	dedupeSetDefault     = 5 // percent
)

// setPattern reads buffer_pattern.
func setPattern(j *Job, a *arg) {
	if pattern, _, ok := syntax.ReadPattern(a.Value, false, a.patternFile); ok {
		j.Content.Pattern = pattern
	}
}

// setVerifyPattern reads values of buffer_pattern, and %o for the offset of the block.
func setVerifyPattern(j *Job, a *arg) {
	if pattern, offsets, ok := syntax.ReadPattern(a.Value, true, a.patternFile); ok {
		j.Verify.Pattern, j.Verify.PatternOffsets = pattern, offsets
	}
}

// patternFile reads a part that is a file name in single quotes, relative to the directory of the job file or the current
// one. It needs permission to read files, and is refused in a workload. It returns false after reporting an error.
func (a *arg) patternFile(text string) (part []byte, rest string, ok bool) {
	o := a.options
	name, rest, closed := strings.Cut(text[1:], "'")
	if !o.Host || o.FS == nil {
		noFile("'")(nil, a)
		return nil, "", false
	}
	name = path.Clean(filepath.ToSlash(name))
	if !closed || !fs.ValidPath(name) {
		a.Bad("want the name of a file below the folder of the job file or the current one, in single quotes")
		return nil, "", false
	}
	place := o.patternFolder(name)
	info, err := fs.Stat(place, name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() == 0 || info.Size() > syntax.PatternBytesMax) {
		err = fmt.Errorf("file %q: not a regular file of 1 to %d bytes", name, syntax.PatternBytesMax)
	}
	if err == nil {
		part, err = fs.ReadFile(place, name)
	}
	if err != nil {
		a.Bad(err.Error())
		return nil, "", false
	}
	return part, rest, true
}

// patternFolder returns the folder that has the file of a pattern, or that of the job file if none has.
func (o *Options) patternFolder(name string) fs.FS {
	folders := []fs.FS{o.FS, o.WorkFS}
	if o.Reading == syntax.Exact {
		slices.Reverse(folders)
	}
	for _, f := range folders {
		if f == nil {
			continue
		}
		if _, err := fs.Stat(f, name); err == nil {
			return f
		}
	}
	return o.FS
}
