// Package program works out what a workload asks for: every clone of every job with its regions, sizes, rates and limits.
//
//	jobs of fiojob, devices, scale ──Compile──▶ Program: Jobs of Clones with Streams, and all that is wrong with them
//	Program ──▶ extents, bytes, notes of a plan; NewSequence: the operations of a clone
//
// It opens no files. Once compiled, a Program changes only before it runs: the back end that was probed and chosen (FallBack), start
// and zero of its axis, and what the kernel or a caller rules out (verification, priorities, depth of a dry run). What a job is
// while it runs is a lane of package ioengine.
package program

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iolog"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/content"
	"github.com/braggdev/bragg/internal/load/ioengine/pattern"
	"github.com/braggdev/bragg/internal/unit"
)

// Program is a workload worked out: every clone of every job with its regions, sizes, rates and limits. It is made
// without opening anything.
type Program struct {
	Workload load.Workload
	Jobs     []Job
	Issues   diag.List
	replay   *iolog.Log // of its one job
	Refused  error      // why io_uring could not be used, where a job wants it
	// OpenLoop says which directions have operations with an intended start; their response times are recorded.
	OpenLoop [interval.DirectionCount]bool
}

// Job is what all clones of a job share.
type Job struct {
	Fio   fiojob.Job
	pos   diag.Position
	Kind  backend.Kind
	Depth int
	// Dataless: no operation moves data.
	Dataless bool
	Phase    int // jobs of one phase run at the same time; stonewall begins another
	Reads    bool
	Writes   bool
	Trims    bool
	Random   bool
	Runtime  time.Duration // 0: to completion
	endless  bool          // time_based: wraps until runtime is over
	Sizes    [interval.DirectionCount]pattern.Sizes
	Sequel   pattern.Sizes // of operations that are not random, where bs_is_seq_rand gives them their own
	Content  content.Content
	Verify   *Verification // nil: nothing is verified
	Replay   *iolog.Log    // nil: operations are drawn
	// Priorities are nil where no operation has one of its own.
	Priorities *Priorities
	Clones     []Clone
}

// Clone is one clone: what fio runs as one process.
type Clone struct {
	Streams []streamSpec
	Key     uint64
	Rate    [interval.DirectionCount]float64 // per second, operations or bytes; 0: closed loop
	InBytes bool                             // rate counts bytes
	Count   int64                            // operations at most; 0: no bound
}

// streamSpec is one clone on one device.
type streamSpec struct {
	Device int // index in Workload.Devices
	Region pattern.Region
	Amount int64 // bytes to move, both directions together; 0 when endless
	pass   int64 // bytes of one pass over the region
	real   int64 // from the region's start to the end of the device
	key    uint64
}

// Compile works out all jobs. It reports every problem, not the first.
func Compile(w load.Workload, jobs []fiojob.Job, replay *iolog.Log) (*Program, error) {
	p := &Program{Workload: w, replay: replay}
	seed := pattern.WorkloadKey(&w)
	phase := 0
	for i := range jobs {
		j := jobs[i]
		if j.Stonewall && i > 0 {
			phase++
		}
		spec := p.compileJob(&j, load.Key(seed, uint64(i)))
		spec.Phase = phase
		p.Jobs = append(p.Jobs, spec)
	}
	if len(jobs) == 0 {
		p.Issues.Errorf(diag.Position{File: w.ConfigName}, "no-job", "the job file has no job")
	}
	p.bound()
	return p, p.Issues.Err()
}

// What one workload may take of a machine.
const (
	lanesMax        = 1 << 13
	bufferBytesMax  = int64(64) << 30
	blockBytesMax   = int64(1) << 30
	depthMaxOfClone = 1 << 15 // entries of an io_uring
)

// bound refuses what no machine could run, before anything is allocated for it.
func (p *Program) bound() {
	lanes := 0
	for i := range p.Jobs {
		spec := &p.Jobs[i]
		lanes += len(spec.Clones)
		if spec.Depth > depthMaxOfClone {
			p.Issues.Errorf(p.optionPos(&spec.Fio, "iodepth"), "too-deep", "job %q: iodepth=%d is above %d",
				spec.Fio.Name, spec.Depth, depthMaxOfClone)
		}
		if spec.BlockMax() > blockBytesMax {
			p.Issues.Errorf(p.optionPos(&spec.Fio, "bs"), "block-too-large", "job %q: blocks of %s are above %s",
				spec.Fio.Name, unit.FormatBytes(spec.BlockMax()), unit.FormatBytes(blockBytesMax))
		}
	}
	pos := diag.Position{File: p.Workload.ConfigName}
	if lanes > lanesMax {
		p.Issues.Errorf(pos, "too-many-clones", "the jobs have %d clones together, at most %d can run", lanes, lanesMax)
	}
	if n := p.Memory(); n > bufferBytesMax {
		p.Issues.Errorf(pos, "too-much-memory", "the jobs need %s of buffers, at most %s can be used: "+
			"lower iodepth, bs or numjobs", unit.FormatBytes(n), unit.FormatBytes(bufferBytesMax))
	}
}

// Memory returns the bytes of buffers of all jobs. Those of later phases are allocated from the start too.
func (p *Program) Memory() int64 {
	var sum int64
	for i := range p.Jobs {
		spec := &p.Jobs[i]
		sum += int64(len(spec.Clones)) * spec.BufferCount() * spec.BufferBytes()
	}
	return sum
}

func (p *Program) compileJob(j *fiojob.Job, key uint64) Job {
	spec := Job{Fio: *j, pos: j.Pos, Depth: max(1, j.IODepth)}
	kind, synchronous, ok := backend.Of(j.IOEngine)
	if !ok {
		p.lacking(j, "ioengine", j.IOEngine)
	}
	scaleZones(&spec, p.Workload.Scale.Factor)
	spec.Kind = kind
	if synchronous && spec.Depth > 1 {
		spec.Depth = 1
		p.Issues.Warnf(p.optionPos(j, "iodepth"), "depth-without-effect",
			"job %q: ioengine=%s does one operation at a time; iodepth=%d has no effect", j.Name, j.IOEngine, j.IODepth)
	}
	spec.Priorities = compilePriorities(j)
	if len(j.Replay.Logs) > 0 {
		p.compileReplay(j, &spec, key)
		return spec
	}
	p.direction(j, &spec)
	if spec.Reads {
		spec.Sizes[interval.Read] = pattern.SizesOf(j, fiojob.Read)
	}
	if spec.Writes {
		spec.Sizes[interval.Write] = pattern.SizesOf(j, fiojob.Write)
	}
	if spec.Trims {
		p.compileTrims(j, &spec)
	}
	p.checkAtomic(j, &spec)
	sizesByOrder(&spec)
	namesOnly(&spec)
	p.compileCalls(j, &spec)
	spec.Dataless = spec.Kind.Dataless()
	p.compileContent(&spec)
	spec.Runtime = j.Runtime
	spec.endless = j.TimeBased && spec.Runtime > 0
	if spec.Verify = p.compileVerification(j, &spec); spec.VerifiesOnly() {
		spec.endless = false
	}
	if j.TimeBased && spec.Runtime == 0 {
		p.Issues.Warnf(p.optionPos(j, "time_based"), "time-based-without-runtime",
			"job %q: time_based without a runtime has no effect; the job ends when its size is done", j.Name)
	}
	if j.RandSeed != 0 {
		key = load.Key(key, j.RandSeed)
	}
	if !p.Issues.HasErrors() {
		p.compileClones(j, &spec, key)
	}
	return spec
}

func (p *Program) direction(j *fiojob.Job, spec *Job) {
	spec.Random = strings.HasPrefix(j.ReadWrite, "rand")
	switch j.ReadWrite {
	case "read", "randread", "":
		spec.Reads = true
	case "write", "randwrite":
		spec.Writes = true
	case "rw", "readwrite", "randrw":
		spec.Reads, spec.Writes = true, true
	case "trim", "randtrim":
		spec.Trims = true
	case "trimwrite", "randtrimwrite":
		spec.Trims, spec.Writes = true, true
	default:
		p.lacking(j, "rw", j.ReadWrite)
	}
}

// lacking reports an option, or a value of one, that only fio has.
func (p *Program) lacking(j *fiojob.Job, key, value string) {
	text := key
	if value != "" {
		text += "=" + value
	}
	p.Issues.Add(diag.Diagnostic{
		Code: "engine-lacks-option", Pos: p.optionPos(j, key), Width: len(text),
		Message: fmt.Sprintf("job %q: the native engine does not have %s", j.Name, text),
		Hint:    "run it with fio",
	})
}

func (p *Program) optionPos(j *fiojob.Job, key string) diag.Position {
	for i := len(j.Options) - 1; i >= 0; i-- {
		if j.Options[i].Key == key {
			return j.Options[i].Pos
		}
	}
	return j.Pos
}

func (p *Program) compileClones(j *fiojob.Job, spec *Job, key uint64) {
	devices := p.devicesOf(j)
	for i := range max(1, j.NumJobs) {
		c := Clone{Key: load.Key(key, uint64(i)), Count: j.NumberIOs * int64(max(1, j.Loops))}
		p.rates(j, spec, &c)
		for k, device := range devices {
			s, err := p.stream(spec, i, devices, k)
			if err == nil {
				err = checkZones(spec, s.Region)
			}
			if err != nil {
				p.Issues.Errorf(j.Pos, "extent", "job %q: device %q: %v", j.Name, p.Workload.Devices[device].Name, err)
				return
			}
			s.key = load.Key(c.Key, uint64(k))
			c.Streams = append(c.Streams, s)
		}
		spec.Clones = append(spec.Clones, c)
	}
	sizeWorkingSet(spec)
}

// devicesOf maps the files of a job to devices of the workload. Names that are not devices were refused before.
func (p *Program) devicesOf(j *fiojob.Job) []int {
	var found []int
	for _, name := range j.Files() {
		for i := range p.Workload.Devices {
			if p.Workload.Devices[i].Name == name {
				found = append(found, i)
				break
			}
		}
	}
	return found
}

// rateOf returns the rate of one direction, in operations or bytes a second; 0: none.
func rateOf(j *fiojob.Job, direction int) (rate float64, inBytes bool) {
	if j.RateIOPS[direction] > 0 {
		return j.RateIOPS[direction], false
	}
	return float64(j.Rate[direction]), j.Rate[direction] > 0
}

func (p *Program) rates(j *fiojob.Job, spec *Job, c *Clone) {
	for d, active := range spec.Draws() {
		if !active {
			continue
		}
		rate, inBytes := rateOf(j, d)
		if spec.Pairs() {
			rate = pairRate(rate, j, inBytes)
		}
		c.Rate[d], c.InBytes = rate, c.InBytes || inBytes
		p.OpenLoop[d] = p.OpenLoop[d] || rate > 0
	}
}

// Delay returns how long after its job the clone begins, in nanoseconds.
func (c *Clone) Delay(job *Job) int64 {
	j := &job.Fio
	span := int64(j.Control.StartDelayMax - j.StartDelay)
	if span <= 0 || span == math.MaxInt64 {
		return int64(j.StartDelay)
	}
	return int64(j.StartDelay) + int64(load.DrawBelow(load.Key(c.Key, pattern.KeyDelay), 0, uint64(span)+1))
}
