package fiojob

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Layout defines how bragg io creates, finds and removes the files of a job. Workloads use existing devices and leave it at
// its zero value.
type Layout struct {
	Overwrite      bool   // files are filled with data before they are written
	KeepCache      bool   // invalidate=0: the page cache of a file is kept
	Fallocate      string // "none", "native", "posix", "keep", "truncate"; "" is native
	NoSync         bool   // create_fsync=0: filled files are not flushed
	NoCreate       bool   // allow_file_create=0: a file that does not exist is an error
	CreateOnOpen   bool   // files are created empty and grow as they are written
	Append         bool   // the region starts at the current end of a file
	Unlink         bool   // files are removed after the job
	UnlinkEachLoop bool
	OpenDir        string // every regular file below this folder is a file of the job
}

// SyncFileRange defines after how many writes (0: never) which flags of sync_file_range(2) are used, on the data written
// since the last call.
type SyncFileRange struct {
	Every                        int
	WaitBefore, Write, WaitAfter bool
}

// Values of Job.Advice other than "", which advises the kernel according to the job's order.
const (
	AdviceNone       = "0"
	adviceOfJob      = "1" // "" in Job.Advice
	AdviceRandom     = "random"
	AdviceSequential = "sequential"
)

const (
	whyFiles = "it applies to files that fio creates; workloads use devices"
	whyCache = "it prepares the page cache or files, and workloads use devices"
)

// nativeFiles lists the options of files. Those about creating and removing them apply only where files are created: in
// workloads they are not passed to fio either, which could remove a disk that is a file (unlink).
var nativeFiles = []spec{
	{name: "overwrite", elsewhere: syntax.Ignored, why: whyCache, does: "fill files with data before they are written",
		apply: boolean(func(j *Job) *bool { return &j.Layout.Overwrite })},
	{name: "invalidate", does: "drop the cached pages of a file before the start and before each further pass; default: on",
		apply: not(func(j *Job) *bool { return &j.Layout.KeepCache })},
	{name: "fallocate", elsewhere: syntax.Ignored, why: whyFiles, report: true,
		does:  "allocation of files before they are written: none lets them grow, truncate only sets their length, the others allocate space",
		apply: choice(func(j *Job) *string { return &j.Layout.Fallocate }, []string{"none", "native", "posix", "keep", "truncate"}, map[string]string{"0": "none", "1": "posix"})},
	{name: "create_fsync", elsewhere: syntax.Ignored, why: whyFiles, report: true, does: "flush files after filling them with data; default: on",
		apply: not(func(j *Job) *bool { return &j.Layout.NoSync })},
	{name: "allow_file_create", elsewhere: syntax.Ignored, why: whyFiles, report: true, does: "create files that do not exist; default: on",
		apply: not(func(j *Job) *bool { return &j.Layout.NoCreate })},
	{name: "create_on_open", elsewhere: syntax.Ignored, why: whyFiles, report: true, does: "no layout: create empty files when the job opens them, and let them grow",
		apply: boolean(func(j *Job) *bool { return &j.Layout.CreateOnOpen })},
	{name: "file_append", elsewhere: syntax.Refused, why: "it writes beyond what the plan shows", does: "start at the current end of the files",
		apply: boolean(func(j *Job) *bool { return &j.Layout.Append })},
	{name: "unlink", elsewhere: syntax.Ignored, why: whyFiles, report: true, does: "remove the files after the job",
		apply: boolean(func(j *Job) *bool { return &j.Layout.Unlink })},
	{name: "unlink_each_loop", elsewhere: syntax.Ignored, why: whyFiles, report: true, does: "remove the files between loops: no effect on a job of one loop, an error for other jobs",
		apply: boolean(func(j *Job) *bool { return &j.Layout.UnlinkEachLoop })},
	{name: "disk_util", elsewhere: syntax.Ignored, why: "a workload's report has no device counters", report: true,
		does:  "report the activity of the devices below the job's files; default: on",
		apply: not(func(j *Job) *bool { return &j.NoDiskUse })},
	{name: "opendir", elsewhere: syntax.Refused, why: notHost, does: "use every regular file below this folder",
		apply: textOf(func(j *Job) *string { return &j.Layout.OpenDir })},

	{name: "fadvise_hint", does: "access order passed to fadvise: that of the job (1), random, sequential, or none (0)",
		apply: setAdvice},
	{name: "sync_file_range", does: "number of writes after which to write back the written data or wait for it", apply: setSyncFileRange},
}

// nativeFlow lists the options that balance jobs against each other.
var nativeFlow = []spec{
	{name: "flow", does: "weight of the job; jobs of one flow_id issue operations in proportion to their weights", apply: count(func(j *Job) *int { return &j.Control.Flow }, 0, 1000)},
	{name: "flow_id", does: "ID of the group of jobs balanced by flow; default: 0", apply: count(func(j *Job) *int { return &j.Control.FlowID }, 0, math.MaxInt32)},
	{name: "flow_sleep", does: "microseconds after which a job that is ahead checks again", apply: micros(func(j *Job) *time.Duration { return &j.Control.FlowSleep })},
}

// setSyncFileRange reads "wait_before,write:8".
func setSyncFileRange(j *Job, a *arg) {
	const want = "want some of wait_before, write and wait_after with commas between them, then :N for each N-th write, such as write:8"
	modes, every, counted := strings.Cut(a.Text, ":")
	s := SyncFileRange{Every: 1}
	if counted {
		n, ok := a.Number(every, 1, math.MaxInt32)
		if !ok {
			return
		}
		s.Every = int(n)
	}
	for mode := range strings.SplitSeq(modes, ",") {
		switch strings.TrimSpace(mode) {
		case "wait_before":
			s.WaitBefore = true
		case "write":
			s.Write = true
		case "wait_after":
			s.WaitAfter = true
		default:
			a.Bad(want)
			return
		}
	}
	j.SyncFileRange = s
	a.Option.Exact = fmt.Sprintf("%s:%d", modes, s.Every)
}

// checkFlows finds jobs that are the only one with a weight.
func (p *parser) checkFlows(jobs []Job) {
	clones := map[int]int{}
	for i := range jobs {
		if c := &jobs[i].Control; c.Flow > 0 {
			clones[c.FlowID] += jobs[i].NumJobs
		}
	}
	for i := range jobs {
		c := &jobs[i].Control
		if c.Flow == 0 || clones[c.FlowID] > 1 {
			continue
		}
		for _, o := range jobs[i].Options {
			if o.Key == "flow" {
				p.blame(diag.SeverityWarning, o, "flow-alone", fmt.Sprintf("flow=%d has no effect: no other job has a weight and flow_id %d", c.Flow, c.FlowID), "")
			}
		}
	}
}

// setAdvice keeps fio's own words, which are printed again.
func setAdvice(j *Job, a *arg) {
	choice(func(j *Job) *string { return &j.Advice }, []string{AdviceNone, adviceOfJob, AdviceRandom, AdviceSequential}, nil)(j, a)
	if j.Advice == adviceOfJob {
		j.Advice = ""
	}
}
