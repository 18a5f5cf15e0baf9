package region

import (
	"slices"
	"strconv"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

const (
	prefillBlockBytes    = 1 << 20
	prefillBlockBytesMin = 4096
	prefillDepth         = 4 // of X-Ray, for one VM per node
)

// Prefill returns a file that writes the data that the jobs use before they run: every job's files, offset and size, in
// order, in blocks of 1 MiB, with direct I/O, at queue depth 4, all jobs at the same time. Clones with an offset_increment
// write their own range. If 1 MiB does not divide a scaled extent, the block is a smaller power of two.
func Prefill(f *fiojob.File) *fiojob.File {
	return f.Each(func(j fiojob.Job) fiojob.Job {
		p := j.Bare()
		p.Filenames, p.Directory, p.NrFiles = slices.Clone(j.Filenames), j.Directory, j.NrFiles
		p.OpenFiles = p.NrFiles
		p.Size, p.Offset = j.Size, j.Offset
		if !j.Size.Set && j.FileSize.Set {
			p.Size = j.FileSize
		}
		if j.NumJobs > 1 && j.OffsetIncrement.Set {
			p.NumJobs, p.OffsetIncrement = j.NumJobs, j.OffsetIncrement
			p.Set("numjobs", strconv.Itoa(p.NumJobs))
			p.Set("offset_increment", fiojob.FormatSize(p.OffsetIncrement))
		}
		block := int64(prefillBlockBytes)
		for block > prefillBlockBytesMin &&
			(p.Size.Bytes/int64(max(1, len(p.Filenames)))%block != 0 || p.Offset.Bytes%block != 0 || p.OffsetIncrement.Bytes%block != 0) {
			block /= 2
		}
		p.ReadWrite, p.IOEngine, p.IODepth, p.IODepthLow, p.Direct = "write", "libaio", prefillDepth, prefillDepth, true
		p.IODepthBatchCompleteMax = 1
		p.BlockSize = [3]int64{block, block, block}
		p.ContinueOnError = "none"
		for _, o := range [][2]string{
			{"rw", "write"}, {"bs", syntax.FormatBytes(block)}, {"ioengine", "libaio"},
			{"iodepth", strconv.Itoa(prefillDepth)}, {"direct", "1"},
		} {
			p.Set(o[0], o[1])
		}
		if len(p.Filenames) > 0 {
			p.Set("filename", syntax.JoinFilenames(p.Filenames, nil))
		}
		if p.Size.Set {
			p.Set("size", fiojob.FormatSize(p.Size))
		}
		if p.Offset.Set {
			p.Set("offset", fiojob.FormatSize(p.Offset))
		}
		return p
	})
}
