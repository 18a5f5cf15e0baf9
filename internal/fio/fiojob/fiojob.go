// Package fiojob reads fio's job files: sections, inheritance, environment, sizes, percentages, comma triples.
//
// It only parses; it does not run jobs. Every option of a file has a class (Native, Ignored, Delegate, Refused, Unknown),
// so that a generator can list exactly which options it lacks.
//
//	texts, words of a command line ──ParseAll──▶ File, by one of three readings
//	text ──Parse, package syntax──▶ File (sections as written) ──Jobs──▶ []Job (typed, inherited, defaults filled in)
//	File ──WithRuntime, package region──▶ File ──Print──▶ text that fio reads the same way
//
// What the author obviously meant takes precedence over fio's reading ("bs = 4k" is 4096 and not 4), with a warning, unless
// Options.Reading selects fio's reading or errors. docs/formats/jobfile.md describes the format.
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

// Places are properties of places that job files cannot state. Programs that make jobs of other formats set them.
type Places struct {
	OnePosition bool // reads and writes that are not random continue one sequence, and not one for each direction
	OwnAlign    bool // random places are multiples of the size of their operation
	NotFirst    bool // with OwnAlign: no random place is the first one of the region
}

// Job is one job of a file after inheritance, with defaults filled in. NumJobs is not expanded.
type Job struct {
	Name    string // name=, or the section's name
	Section string
	Group   int // reporting group: stonewall and new_group start another
	Pos     diag.Position

	Filenames []string
	Directory string // a list of folders with colons between them; see Directories
	// FilenameFormat is the pattern of file names if Filenames is empty; see CloneFiles.
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
	// BlockUnaligned allows any size of a range, not only multiples of the smallest. BlockByOrder uses the read sizes for
	// sequential and the write sizes for random operations of any direction.
	BlockUnaligned, BlockByOrder bool
	SerializeOverlap             bool

	Size            Size
	FileSize        Size
	FileSizeMin     int64 `json:",omitzero"` // each file draws its length from here to FileSize; 0: all have FileSize
	Offset          Size
	OffsetIncrement Size
	OffsetAlign     int64 // of offsets that are percentages; 0: the smallest block
	IOSize          Size
	ZoneMode        string // "none", "strided"
	ZoneSize        int64
	ZoneRange       int64
	ZoneSkip        Size
	NoRandomMap     bool
	LFSR            bool `json:",omitzero"` // random_generator=lfsr, which makes its own random map
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
	Advice                                                                     string        `json:",omitempty"` // "" follows the job's order

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
	WriteIOLog string `json:",omitzero"` // file that records the job's operations; "" is none

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
	Places          Places          `json:",omitzero"`

	// Options are all options that apply to this job as written, in fio's spelling, for "job options" of reports and for
	// the command line.
	Options []syntax.Option

	// PercentFloor is the minimum size in bytes that a percentage of a scaled job yields.
	PercentFloor int64 `json:"-"`

	newGroup bool
	source   string // the header line
	kbBase   int64  // value of k in this job: 1024 or 1000
}
