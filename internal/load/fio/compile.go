package fio

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/jobplan"
	"github.com/braggdev/bragg/internal/unit"
)

// compiled is a workload compiled for fio.
type compiled struct {
	file   *fiojob.File
	plan   load.Plan
	text   string // the job file that fio reads
	groups []group
	uses   map[string]bool // device names
	// parallel: all jobs start together and their runtimes count from there, so that the longest runtime is that of the
	// run.
	parallel bool
	bound    time.Duration // longest time that the jobs may take; 0: not known
}

// group is one entry of fio's status documents: the jobs that it sums up.
type group struct {
	name    string
	devices []string // the devices that its operations may use
	errors  string   // continue_on_error
	// untimed: the file disables latency measurement, so operations are counted without latencies.
	untimed bool
}

// compile parses the configuration of w and scales, prefills, bounds and prints it.
func compile(w load.Workload) (*compiled, error) {
	depth, err := readOptions(w)
	if err != nil {
		return nil, err
	}
	sizes, names := map[string]int64{}, []string(nil)
	for _, d := range w.Devices {
		sizes[d.Name] = d.SizeBytes
		names = append(names, d.Name)
	}
	sizeOf := func(name string) (int64, bool) { n, ok := sizes[name]; return n, ok && n > 0 }

	file, issues := fiojob.Parse(w.ConfigName, w.Config, fiojob.Options{})
	issues = append(issues, file.Undeclared(names)...)
	issues = append(issues, foreign(file)...)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	rates, err := w.RateScale()
	if err != nil {
		return nil, err
	}
	whole := region.Resolve(region.ScaleRates(file, rates), sizeOf)
	file = region.Resolve(region.Scale(whole, w.Scale.Factor, w.Scale.BlocksMin), sizeOf)
	if w.Prefill {
		whole, file = region.Prefill(whole), region.Prefill(file)
		if depth > 0 {
			file = file.WithDepth(depth)
		}
	}
	least, most := region.Takes(file.Jobs()) // of the original job file
	timed := region.Timed(file.Jobs())
	if !w.Prefill {
		file = file.WithRuntime(w.Runtime).ContinueOnErrors()
	}
	c := &compiled{file: file, uses: map[string]bool{}, parallel: true}
	if err := c.describe(w, whole, sizeOf); err != nil {
		return nil, err
	}
	c.plan.Issues, c.plan.TakesLeast, c.plan.TakesMost, c.plan.Timed = issues, least, most, timed
	if err := checkScaled(w, file); err != nil {
		return nil, err
	}
	if err := c.checkPaths(w); err != nil {
		return nil, err
	}
	c.bound = bound(file)
	return c, nil
}

// optionPrefillDepth is the option of a workload that carries the queue depth of a prefill.
const optionPrefillDepth = "prefill_iodepth"

// readOptions reads the options of a workload; depth is 0 if it is not set.
func readOptions(w load.Workload) (depth int, err error) {
	for key, value := range w.Options {
		bad := &diag.Error{
			Code: "bad-generator-option", Exit: diag.ExitData,
			Message: fmt.Sprintf("option %q of workload %q: the generator fio has no such option", key, w.Name),
			Hint:    "it has " + load.OptionRateScale + "; write fio's own options into the job file",
		}
		if key == load.OptionRateScale {
			continue
		}
		if key != optionPrefillDepth {
			return 0, bad
		}
		if depth, err = strconv.Atoi(value); err != nil || depth < 1 {
			bad.Message = fmt.Sprintf("option %q of workload %q: want a queue depth, and not %q", key, w.Name, value)
			return 0, bad
		}
	}
	return depth, nil
}

// describe sets the fields of the plan.
func (c *compiled) describe(w load.Workload, whole *fiojob.File, sizeOf func(string) (int64, bool)) error {
	touched, err := c.touched(w, sizeOf)
	if err != nil {
		return &diag.Error{
			Code: "bad-extent", Exit: diag.ExitData, Err: err,
			Message: fmt.Sprintf("plan workload %q", w.Name), Hint: "compare the job file with the sizes of the VM's disks",
		}
	}
	c.plan.Extents = touched
	if w.Scale.Factor > 0 && w.Scale.Factor < 1 {
		before, err := region.Walked(whole, sizeOf, sizeOf)
		if err == nil {
			for _, e := range before {
				c.plan.ScaledFrom += e.Length
			}
		}
	}
	for _, j := range c.file.Jobs() {
		for _, f := range j.Files() {
			c.uses[f] = true
		}
		c.plan.Jobs = append(c.plan.Jobs, describeJob(&j, sizeOf))
		_, largest := j.BlockBounds()
		c.plan.BlockBytesMax = max(c.plan.BlockBytesMax, largest)
		// fio allocates one buffer for each slot of its queue.
		c.plan.MemoryBytes += int64(j.NumJobs) * int64(max(1, j.IODepth)) * largest
		if n := region.BytesWritten(&j); n < 0 || c.plan.BytesWritten < 0 {
			c.plan.BytesWritten = -1
		} else {
			c.plan.BytesWritten += n
		}
		if paced(&j) {
			c.note("fio does not run rates as an open loop: a stall of the storage delays later operations, and its latency does not count their wait")
		}
		if j.ZoneMode == "strided" && !j.Has("zonemode") {
			c.note("fio gets zonemode=strided, because it refuses zonesize alone")
		}
		if j.Stonewall || j.StartDelay > 0 || j.RampTime > 0 || j.RampSize > 0 {
			c.parallel = false
		}
		if j.RampTime > 0 || j.RampSize > 0 {
			c.note("fio starts its counters again after a ramp; operations around that moment may be missing")
		}
	}
	if !w.Prefill {
		c.plan.Ramp = region.Ramp(c.file.Jobs())
	}
	c.plan.WriteRate = region.WriteRate(c.file.Jobs())
	c.plan.Command = c.file.CommandLine()
	return nil
}

// paced reports whether fio delays operations of a job according to a rate or a log.
func paced(j *fiojob.Job) bool {
	return j.Rate != [3]int64{} || j.RateIOPS != [3]float64{} || len(j.Replay.Logs) > 0 && !j.Replay.NoStall
}

// loop is paced if any job is: the latencies of all jobs are merged.
func (c *compiled) loop() interval.Loop {
	for _, j := range c.file.Jobs() {
		if paced(&j) {
			return interval.LoopPaced
		}
	}
	return interval.LoopClosed
}

// touched returns the extents that fio touches: more than the job file's regions if it has strided zones.
func (c *compiled) touched(w load.Workload, sizeOf func(string) (int64, bool)) ([]extent.Extent, error) {
	inside, err := region.Touched(c.file, sizeOf)
	if err != nil {
		return nil, err
	}
	realSize := func(name string) (int64, bool) {
		for _, d := range w.Devices {
			if d.Name == name {
				n := cmp.Or(d.ActualBytes, d.SizeBytes)
				return n, n > 0
			}
		}
		return 0, false
	}
	walked, err := region.Walked(c.file, sizeOf, realSize)
	if err != nil {
		return nil, err
	}
	if end := endOf(walked); end > endOf(inside) {
		c.note(fmt.Sprintf("fio walks strided zones beyond size and filesize, to the end of the device if it has bytes left to move: "+
			"here up to %s", unit.FormatBytes(end)))
	}
	return walked, nil
}

// endOf returns the largest end of extents on any device.
func endOf(extents []extent.Extent) (end int64) {
	for _, e := range extents {
		end = max(end, e.End())
	}
	return end
}

// note adds a note, without duplicates.
func (c *compiled) note(text string) {
	if !slices.Contains(c.plan.Notes, text) {
		c.plan.Notes = append(c.plan.Notes, text)
	}
}

func describeJob(j *fiojob.Job, sizeOf func(string) (int64, bool)) load.JobPlan {
	extents, _ := region.Of(j, sizeOf) // an error was reported before
	p := jobplan.Of(j, extents)
	if j.Writes() && !j.RefillBuffers && !j.ScrambleBuffers {
		p.Reducible = 1 // fio writes the same buffers again and again
	}
	for _, e := range extents {
		p.SizeBytes += e.Length
	}
	for _, d := range j.Directions() {
		p.RateIOPS += j.RateIOPS[d] * float64(j.NumJobs)
		var sizes []string
		for _, s := range j.BlockSizes(d) {
			text := unit.FormatBytes(s.Bytes)
			if s.Percent < 100 {
				text += fmt.Sprintf(" %g %%", s.Percent)
			}
			sizes = append(sizes, text)
		}
		text := strings.Join(sizes, ", ")
		switch {
		case p.BlockSizes == "":
			p.BlockSizes = text
		case p.BlockSizes != text:
			p.BlockSizes += " / " + text
		}
	}
	return p
}

// foreign reports I/O engines that use more than the devices of the VM.
func foreign(file *fiojob.File) diag.List {
	var list diag.List
	for _, j := range file.Jobs() {
		if fiojob.UsesFiles(j.IOEngine) {
			continue
		}
		list.Errorf(j.Pos, "foreign-engine", "job %q: ioengine=%s does not use the devices of the VM", j.Name, j.IOEngine)
	}
	return list
}

// checkPaths refuses device paths that cannot be written in a job file, or that fio would expand.
func (c *compiled) checkPaths(w load.Workload) error {
	for _, d := range w.Devices {
		if c.uses[d.Name] && (strings.ContainsAny(d.Path, ";#$\n\r") || strings.TrimSpace(d.Path) != d.Path) {
			return &diag.Error{
				Code: "unprintable-path", Exit: diag.ExitUsage,
				Message: fmt.Sprintf("path %q of device %q cannot be written in a job file of fio", d.Path, d.Name),
				Hint:    "use a folder for runs whose path has no ; # or $ and no blank at its ends",
			}
		}
	}
	return nil
}

// checkScaled refuses sizes that cannot be written for fio: small percentages after scaling, if files of several sizes have
// no common number of bytes.
func checkScaled(w load.Workload, file *fiojob.File) error {
	if w.Scale.Factor <= 0 || w.Scale.Factor >= 1 {
		return nil
	}
	for _, j := range file.Jobs() {
		if j.Size.Percent+j.FileSize.Percent+j.Offset.Percent+j.OffsetIncrement.Percent+j.IOSize.Percent > 0 {
			return &diag.Error{
				Code: "cannot-scale", Exit: diag.ExitData,
				Message: fmt.Sprintf("job %q: its devices have several sizes, which fio cannot be given a share of", j.Name),
				Hint:    "give each device a job, or run with --engine native",
			}
		}
	}
	return nil
}

// grouping lists options that act on reporting groups, which must then stay as in the file.
var grouping = []string{
	"exitall", "exit_what", "exitall_on_error", "steadystate", "steadystate_duration", "steadystate_ramp_time",
}

// print writes the job file for fio. If nothing depends on the file's own reporting groups, every job gets its own, so that
// each entry of a status document is one job on known devices.
func (c *compiled) print(w load.Workload) error {
	paths := map[string]string{}
	for _, d := range w.Devices {
		paths[d.Name] = d.Path
	}
	jobs := c.file.Jobs()
	own := !slices.ContainsFunc(jobs, func(j fiojob.Job) bool { return slices.ContainsFunc(grouping, j.Has) })
	if !own {
		c.note("the file's own reporting groups stay, because options act on them")
	}
	var b strings.Builder
	for i, j := range jobs {
		if strings.Contains(j.Section, "$") {
			return &diag.Error{
				Code: "unprintable-name", Exit: diag.ExitData,
				Message: fmt.Sprintf("job %q: fio would expand the $ in its name", j.Section), Hint: "rename the job",
			}
		}
		fmt.Fprintf(&b, "[%s]\n", j.Section)
		for _, line := range j.Printed(func(name string) string { return paths[name] }) {
			if key, value, _ := strings.Cut(line, "="); key != "filename" && strings.Contains(value, "$") {
				return &diag.Error{
					Code: "unprintable-value", Exit: diag.ExitData,
					Message: fmt.Sprintf("job %q: fio would expand the $ in %s", j.Name, line),
				}
			}
			b.WriteString(line + "\n")
		}
		// Threads end with the process when it is killed; fio's processes would not.
		b.WriteString("thread=1\ngroup_reporting=1\n")
		if own {
			b.WriteString("new_group=1\n")
		}
		if j.Has("verify") {
			b.WriteString("verify_state_save=0\n") // the file would be in the working directory
		}
		if list := ignored(j.ContinueOnError); list != "" && !j.Has("ignore_error") {
			b.WriteString("ignore_error=" + list + "\n")
		}
		if !j.Has("randseed") {
			fmt.Fprintf(&b, "randseed=%d\n", seed(w, i))
		}
		c.join(j, own)
	}
	c.text = b.String()
	return nil
}

// storageErrors are the errors of storage that is full or unavailable: EIO, ENXIO, ENODEV, ENOSPC, EBADE, ENODATA, ENOLINK,
// EILSEQ, EOPNOTSUPP, ETIMEDOUT and EREMOTEIO of Linux.
const storageErrors = "5:6:19:28:52:61:67:84:95:110:121"

// ignored returns the value of ignore_error. continue_on_error alone only survives EIO and EILSEQ; with this value, the
// other errors of storage are counted and survived too, as in the native engine.
func ignored(continueOnError string) string {
	switch continueOnError {
	case "all", "io":
		return storageErrors + "," + storageErrors
	case "read":
		return storageErrors
	case "write":
		return "," + storageErrors
	}
	return ""
}

// join adds j to the groups.
func (c *compiled) join(j fiojob.Job, own bool) {
	if own || len(c.groups) == 0 || j.Group != c.file.Jobs()[len(c.groups)-1].Group {
		c.groups = append(c.groups, group{name: j.Name})
	}
	g := &c.groups[len(c.groups)-1]
	g.devices = append(g.devices, j.Files()...)
	g.errors = j.ContinueOnError
	g.untimed = g.untimed || j.On("disable_clat") || j.On("gtod_reduce")
	slices.Sort(g.devices)
	g.devices = slices.Compact(g.devices)
}

// seed derives the seed of one job from the run's seed, the workload's place in the scenario and the VM, but not from
// names, so that clones differ and repetitions do not. fio adds the number of the job's clone.
func seed(w load.Workload, job int) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, w.Seed))
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(w.Ordinal)))
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(job)))
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(w.Number)))
	return h.Sum64() >> 1
}

// bound adds up the longest times of all jobs, as if they ran sequentially; 0 if a job has none.
func bound(file *fiojob.File) time.Duration {
	var sum time.Duration
	for _, j := range file.Jobs() {
		if j.Runtime == 0 || j.RampSize > 0 {
			return 0
		}
		sum += j.StartDelay + j.RampTime + j.Runtime*time.Duration(max(1, j.Loops))
	}
	return sum
}
