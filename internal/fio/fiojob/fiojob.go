// Package fiojob reads fio's job files: sections, inheritance, environment, sizes, percentages, comma triples.
//
// It knows the format and the meaning of each option as a value; it drives no load. Every option of a file is
// classified (Native, Ignored, Delegate, Refused, Unknown), so that a generator can say exactly what it lacks.
//
//	texts, words of a command line ──ParseAll──▶ File, by one of three readings
//	text ──Parse, package syntax──▶ File (sections as written) ──Jobs──▶ []Job (typed, inherited, defaults filled in)
//	File ──WithRuntime, package region──▶ File ──Print──▶ text that fio reads the same way
//
// What a person obviously meant wins over what fio would read ("bs = 4k" is 4096 and not 4), and a warning says so,
// unless Options.Reading asks for fio's own values or for errors. docs/formats/jobfile.md describes the format.
package fiojob

import (
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Direction indexes fio's comma triples.
type Direction int

const (
	Read Direction = iota
	Write
	Trim
)

// Size is a number of bytes, or a percentage of the device or file when Percent is not 0.
type Size struct {
	Bytes   int64
	Percent float64
	Set     bool
}

// Job is one job of a file after inheritance, with defaults filled in. NumJobs is not expanded.
type Job struct {
	Name    string // name=, else the section's
	Section string
	Group   int // reporting group: stonewall and new_group start another
	Pos     diag.Position

	Filenames []string
	Directory string // a list with : between folders; see Directories
	// FilenameFormat makes the names of files where Filenames is empty; see CloneFiles.
	FilenameFormat string
	NrFiles        int
	OpenFiles      int

	ReadWrite     string // "read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim", …
	Sequence      int64  // N of "randread:N" (operations) or "read:N" (bytes to skip, may be negative)
	RWSequencer   string // "sequential", "identical": what N of "randread:N" does
	RWMixRead     int    // percent
	BlockSize     [3]int64
	BlockRange    [3][2]int64 // low and high; zero when not set
	BlockSplit    [3][]syntax.Split
	BlockAlign    [3]int64
	PercentRandom [3]int
	// BlockUnaligned: any size of a range, not only multiples of the smallest. BlockByOrder: sizes of reads are for
	// sequential and sizes of writes for random operations of any direction.
	BlockUnaligned, BlockByOrder bool
	SerializeOverlap             bool

	Size            Size
	FileSize        Size
	FileSizeMin     int64 `json:",omitzero"` // each file has a length of its own from here to FileSize; 0: all have FileSize
	Offset          Size
	OffsetIncrement Size
	OffsetAlign     int64 // of offsets that are percentages; 0: the smallest block
	IOSize          Size
	ZoneMode        string // "none", "strided"
	ZoneSize        int64
	ZoneRange       int64
	ZoneSkip        Size
	NoRandomMap     bool
	LFSR            bool `json:",omitzero"` // random_generator=lfsr, which makes a random map of its own
	Distribution    syntax.Distribution

	IOEngine                                                                   string
	IODepth                                                                    int
	IODepthBatch, IODepthBatchCompleteMin, IODepthBatchCompleteMax, IODepthLow int
	Direct                                                                     bool
	Sync                                                                       string // "none", "sync", "dsync"
	WriteHint                                                                  string // "", "none", "short", … "extreme"
	NoWait, Uncached, Atomic                                                   bool
	ForceAsync                                                                 int // 0: never
	FSync                                                                      int
	FDataSync                                                                  int
	NoDiskUse                                                                  bool `json:",omitzero"` // disk_util=0
	EndFSync                                                                   bool
	SyncFileRange                                                              SyncFileRange `json:",omitzero"`
	Advice                                                                     string        `json:",omitempty"` // "" as the order of the job says

	NumJobs         int
	Runtime         time.Duration
	TimeBased       bool
	RampTime        time.Duration
	RampSize        int64 `json:",omitzero"` // bytes
	StartDelay      time.Duration
	Loops           int
	NumberIOs       int64
	Stonewall       bool
	GroupReporting  bool
	ThinkTime       time.Duration
	ThinkTimeBlocks int

	Rate        [3]int64 // bytes per second, 0: none
	RateIOPS    [3]float64
	RateProcess string // "linear", "poisson"

	Replay     Replay `json:",omitzero"`
	WriteIOLog string `json:",omitzero"` // file that gets what the job does; "" is none

	ContinueOnError string // "none", "read", "write", "io", "verify", "all"
	ZeroBuffers     bool
	RefillBuffers   bool
	ScrambleBuffers bool
	Content         Content
	Verify          Verification
	RandSeed        uint64
	RandRepeat      bool
	Logs            Logs    `json:",omitzero"`
	Control         Control `json:",omitzero"`
	Layout          Layout  `json:",omitzero"`

	CommandPriority CommandPriority `json:",omitzero"`

	// Options are all options that hold for this job as they were written, in fio's own spelling, for "job options" of
	// reports and for the command line.
	Options []syntax.Option

	// PercentFloor is the least that a percentage of a scaled job comes to, in bytes.
	PercentFloor int64 `json:"-"`

	newGroup bool
	source   string // the header line
	kbBase   int64  // what k means in this job: 1024 or 1000
}
