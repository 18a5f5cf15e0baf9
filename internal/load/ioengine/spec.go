package ioengine

import (
	"fmt"
	"strconv"
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

// program is a workload worked out: every clone of every job with its regions, sizes, rates and limits. It is made
// without opening anything and never changes.
type program struct {
	workload load.Workload
	jobs     []jobSpec
	issues   diag.List
	replay   *iolog.Log // of its one job
	refused  error      // why io_uring could not be used, where a job wants it
	// openLoop says which directions have operations with an intended start; their response times are recorded.
	openLoop [interval.DirectionCount]bool
}

// jobSpec is what all clones of a job share.
type jobSpec struct {
	job   fiojob.Job
	pos   diag.Position
	kind  backend.Kind
	depth int
	// dataless: no operation moves data.
	dataless bool
	phase    int // jobs of one phase run at the same time; stonewall begins another
	reads    bool
	writes   bool
	trims    bool
	random   bool
	runtime  time.Duration // 0: to completion
	endless  bool          // time_based: wraps until runtime is over
	sizes    [interval.DirectionCount]pattern.Sizes
	sequel   pattern.Sizes // of operations that are not random, where bs_is_seq_rand gives them their own
	content  content.Content
	verify   *verification // nil: nothing is verified
	replay   *iolog.Log    // nil: operations are drawn
	// priorities are nil where no operation has one of its own.
	priorities *priorities
	clones     []cloneSpec
}

// cloneSpec is one clone: what fio runs as one process.
type cloneSpec struct {
	streams []streamSpec
	key     uint64
	rate    [interval.DirectionCount]float64 // per second, operations or bytes; 0: closed loop
	inBytes bool                             // rate counts bytes
	count   int64                            // operations at most; 0: no bound
}

// streamSpec is one clone on one device.
type streamSpec struct {
	device int // index in Workload.Devices
	region pattern.Region
	amount int64 // bytes to move, both directions together; 0 when endless
	pass   int64 // bytes of one pass over the region
	real   int64 // from the region's start to the end of the device
	key    uint64
}

// compile works out all jobs. It reports every problem, not the first.
func compile(w load.Workload, jobs []fiojob.Job, replay *iolog.Log) (*program, error) {
	p := &program{workload: w, replay: replay}
	seed := pattern.WorkloadKey(&w)
	phase := 0
	for i := range jobs {
		j := jobs[i]
		if j.Stonewall && i > 0 {
			phase++
		}
		spec := p.compileJob(&j, load.Key(seed, uint64(i)))
		spec.phase = phase
		p.jobs = append(p.jobs, spec)
	}
	if len(jobs) == 0 {
		p.issues.Errorf(diag.Position{File: w.ConfigName}, "no-job", "the job file has no job")
	}
	p.bound()
	return p, p.issues.Err()
}

// What one workload may take of a machine.
const (
	lanesMax        = 1 << 13
	bufferBytesMax  = int64(64) << 30
	blockBytesMax   = int64(1) << 30
	depthMaxOfClone = 1 << 15 // entries of an io_uring
)

// bound refuses what no machine could run, before anything is allocated for it.
func (p *program) bound() {
	lanes := 0
	for i := range p.jobs {
		spec := &p.jobs[i]
		lanes += len(spec.clones)
		if spec.depth > depthMaxOfClone {
			p.issues.Errorf(p.optionPos(&spec.job, "iodepth"), "too-deep", "job %q: iodepth=%d is above %d",
				spec.job.Name, spec.depth, depthMaxOfClone)
		}
		if spec.blockMax() > blockBytesMax {
			p.issues.Errorf(p.optionPos(&spec.job, "bs"), "block-too-large", "job %q: blocks of %s are above %s",
				spec.job.Name, unit.FormatBytes(spec.blockMax()), unit.FormatBytes(blockBytesMax))
		}
	}
	pos := diag.Position{File: p.workload.ConfigName}
	if lanes > lanesMax {
		p.issues.Errorf(pos, "too-many-clones", "the jobs have %d clones together, at most %d can run", lanes, lanesMax)
	}
	if n := p.memory(); n > bufferBytesMax {
		p.issues.Errorf(pos, "too-much-memory", "the jobs need %s of buffers, at most %s can be used: "+
			"lower iodepth, bs or numjobs", unit.FormatBytes(n), unit.FormatBytes(bufferBytesMax))
	}
}

// memory returns the bytes of buffers of all jobs. Those of later phases are allocated from the start too.
func (p *program) memory() int64 {
	var sum int64
	for i := range p.jobs {
		spec := &p.jobs[i]
		sum += int64(len(spec.clones)) * spec.bufferCount() * spec.bufferBytes()
	}
	return sum
}

func (p *program) compileJob(j *fiojob.Job, key uint64) jobSpec {
	spec := jobSpec{job: *j, pos: j.Pos, depth: max(1, j.IODepth)}
	kind, synchronous, ok := backend.Of(j.IOEngine)
	if !ok {
		p.lacking(j, "ioengine", j.IOEngine)
	}
	spec.scaleZones(p.workload.Scale.Factor)
	spec.kind = kind
	if synchronous && spec.depth > 1 {
		spec.depth = 1
		p.issues.Warnf(p.optionPos(j, "iodepth"), "depth-without-effect",
			"job %q: ioengine=%s does one operation at a time; iodepth=%d has no effect", j.Name, j.IOEngine, j.IODepth)
	}
	spec.priorities = compilePriorities(j)
	if len(j.Replay.Logs) > 0 {
		p.compileReplay(j, &spec, key)
		return spec
	}
	p.direction(j, &spec)
	if spec.reads {
		spec.sizes[interval.Read] = pattern.SizesOf(j, fiojob.Read)
	}
	if spec.writes {
		spec.sizes[interval.Write] = pattern.SizesOf(j, fiojob.Write)
	}
	if spec.trims {
		p.compileTrims(j, &spec)
	}
	p.checkAtomic(j, &spec)
	spec.sizesByOrder()
	spec.namesOnly()
	p.compileCalls(j, &spec)
	spec.dataless = spec.kind.Dataless()
	p.compileContent(&spec)
	spec.runtime = j.Runtime
	spec.endless = j.TimeBased && spec.runtime > 0
	if spec.verify = p.compileVerification(j, &spec); spec.verifiesOnly() {
		spec.endless = false
	}
	if j.TimeBased && spec.runtime == 0 {
		p.issues.Warnf(p.optionPos(j, "time_based"), "time-based-without-runtime",
			"job %q: time_based without a runtime has no effect; the job ends when its size is done", j.Name)
	}
	if j.RandSeed != 0 {
		key = load.Key(key, j.RandSeed)
	}
	if !p.issues.HasErrors() {
		p.compileClones(j, &spec, key)
	}
	return spec
}

func (p *program) direction(j *fiojob.Job, spec *jobSpec) {
	spec.random = strings.HasPrefix(j.ReadWrite, "rand")
	switch j.ReadWrite {
	case "read", "randread", "":
		spec.reads = true
	case "write", "randwrite":
		spec.writes = true
	case "rw", "readwrite", "randrw":
		spec.reads, spec.writes = true, true
	case "trim", "randtrim":
		spec.trims = true
	case "trimwrite", "randtrimwrite":
		spec.trims, spec.writes = true, true
	default:
		p.lacking(j, "rw", j.ReadWrite)
	}
}

// lacking reports an option, or a value of one, that only fio has.
func (p *program) lacking(j *fiojob.Job, key, value string) {
	text := key
	if value != "" {
		text += "=" + value
	}
	p.issues.Add(diag.Diagnostic{
		Code: "engine-lacks-option", Pos: p.optionPos(j, key), Width: len(text),
		Message: fmt.Sprintf("job %q: the native engine does not have %s", j.Name, text),
		Hint:    "run it with fio",
	})
}

func (p *program) optionPos(j *fiojob.Job, key string) diag.Position {
	for i := len(j.Options) - 1; i >= 0; i-- {
		if j.Options[i].Key == key {
			return j.Options[i].Pos
		}
	}
	return j.Pos
}

func (p *program) compileClones(j *fiojob.Job, spec *jobSpec, key uint64) {
	devices := p.devicesOf(j)
	for i := range max(1, j.NumJobs) {
		c := cloneSpec{key: load.Key(key, uint64(i)), count: j.NumberIOs * int64(max(1, j.Loops))}
		p.rates(j, spec, &c)
		for k, device := range devices {
			s, err := p.stream(spec, i, devices, k)
			if err == nil {
				err = spec.checkZones(s.region)
			}
			if err != nil {
				p.issues.Errorf(j.Pos, "extent", "job %q: device %q: %v", j.Name, p.workload.Devices[device].Name, err)
				return
			}
			s.key = load.Key(c.key, uint64(k))
			c.streams = append(c.streams, s)
		}
		spec.clones = append(spec.clones, c)
	}
	spec.sizeWorkingSet()
}

// devicesOf maps the files of a job to devices of the workload. Names that are no device were refused before.
func (p *program) devicesOf(j *fiojob.Job) []int {
	var found []int
	for _, name := range j.Files() {
		for i := range p.workload.Devices {
			if p.workload.Devices[i].Name == name {
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

func (p *program) rates(j *fiojob.Job, spec *jobSpec, c *cloneSpec) {
	for d, active := range spec.draws() {
		if !active {
			continue
		}
		rate, inBytes := rateOf(j, d)
		if spec.pairs() {
			rate = pairRate(rate, j, inBytes)
		}
		c.rate[d], c.inBytes = rate, c.inBytes || inBytes
		p.openLoop[d] = p.openLoop[d] || rate > 0
	}
}

// blockSizes prints the sizes of a job for a plan: "8k", "8k/90:32k/10", "4k-64k".
func blockSizes(j *fiojob.Job, d fiojob.Direction) string {
	switch {
	case len(j.BlockSplit[d]) > 0:
		var parts []string
		for _, s := range j.BlockSplit[d] {
			parts = append(parts, shortSize(s.Bytes)+"/"+strconv.FormatFloat(s.Percent, 'g', -1, 64))
		}
		return strings.Join(parts, ":")
	case j.BlockRange[d][1] > j.BlockRange[d][0]:
		return shortSize(j.BlockRange[d][0]) + "-" + shortSize(j.BlockRange[d][1])
	}
	return shortSize(j.BlockSize[d])
}

func shortSize(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "g"}, {1 << 20, "m"}, {1 << 10, "k"}} {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
