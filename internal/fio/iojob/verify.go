package iojob

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load/ioengine/measuring"
	"github.com/braggdev/bragg/internal/unit"
)

// sayMismatches reports the mismatches that verification found.
func (o *Options) sayMismatches(job string, account *measuring.Account) {
	if account.SurveyedBytes > 0 {
		o.say("verify: job %q: it was written in another order than this job would write it; %s were found by their headers", job,
			unit.FormatBytes(account.SurveyedBytes))
	}
	if account.SurveyVague {
		o.say("warning: verify: job %q: how much was written there is not known exactly, so a block that has lost its header may not have been noticed", job)
	}
	for _, line := range account.Mismatches {
		o.say("verify: job %q: %s", job, line)
	}
	if more := account.MismatchCount - min(account.MismatchCount, uint64(len(account.Mismatches))); more > 0 {
		o.say("verify: job %q: %d more like these", job, more)
	}
}

// shareFiles finds clones that write to the same places at the same time. The header of a block may then be from any of
// them, so that verification cannot check which clone wrote it.
func shareFiles(clones []*clone, o *Options) {
	type part struct {
		clone    *clone
		from, to int64
	}
	parts := map[string][]part{}
	for _, c := range clones {
		if !c.job.Writes() {
			continue
		}
		for i := range c.files {
			key := fmt.Sprintf("%d %s", c.phase, c.files[i].path)
			from, to := c.span(i)
			parts[key] = append(parts[key], part{c, from, to})
		}
	}
	shared := map[string]bool{}
	for key, list := range parts {
		slices.SortFunc(list, func(a, b part) int { return cmp.Compare(a.from, b.from) })
		for i := 1; i < len(list); i++ {
			before := slices.MaxFunc(list[:i], func(a, b part) int { return cmp.Compare(a.to, b.to) })
			if list[i].from >= before.to || before.clone == list[i].clone {
				continue
			}
			for _, c := range []*clone{before.clone, list[i].clone} {
				c.job.Verify.HeaderSeed, c.job.Verify.WriteSequence, c.job.Verify.Uncertain = false, false, true
				if c.job.Verify.Method != "" {
					shared[key] = true
				}
			}
			list[i].to = max(list[i].to, before.to)
		}
	}
	for key := range shared {
		_, path, _ := strings.Cut(key, " ")
		o.say("warning: several clones write to the same places of %s: whose write is there cannot be checked, and writes that overlap in "+
			"time may look damaged; offset_increment gives each a place of its own", path)
	}
}

// span is the range that a clone may touch in one of its files.
func (c *clone) span(file int) (from, to int64) {
	j := &c.job
	from, to = j.Offset.Bytes, math.MaxInt64
	percent := j.Size.Percent > 0 || j.FileSize.Percent > 0 || j.Offset.Percent > 0
	switch {
	case percent || j.FileSize.Set:
	case j.Size.Set:
		to = from + j.Size.Bytes/int64(len(c.files))
	case c.files[file].size > 0:
		to = c.files[file].size
	}
	return from, to
}

// verifiesOnly reports whether a job only reads back what an earlier run wrote.
func verifiesOnly(j *fiojob.Job) bool { return j.Verify.Only && j.Verify.Method != "" }
