package jobplan_test

import (
	"math"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/jobplan"
)

func TestFacts(t *testing.T) {
	at := func(offset int64) []extent.Extent { return []extent.Extent{{Offset: offset}} }
	for text, c := range map[string]struct {
		clones []extent.Extent
		is     func(p load.JobPlan) bool
	}{
		"rw=randread bs=8k ioengine=libaio iodepth=4 direct=1": {at(0), func(p load.JobPlan) bool {
			return p.Reads && !p.Writes && p.Direct && p.QueueDepth == 4 && p.DepthAsked == 4 && p.BlockMin == 8192 && p.BlockMax == 8192 &&
				p.AlignBytes == 8192 && !p.Pauses && !p.SameRegion && !p.Linear && p.Reducible == 0
		}},
		"rw=randread iodepth=32":                                      {at(0), func(p load.JobPlan) bool { return p.QueueDepth == 1 && p.DepthAsked == 32 }}, // psync
		"rw=read bs=64k ioengine=mmap iodepth=2":                      {at(0), func(p load.JobPlan) bool { return p.QueueDepth == 1 && p.DepthAsked == 2 }},
		"rw=read bs=8k":                                               {at(8192 + 512), func(p load.JobPlan) bool { return p.AlignBytes == 512 }},
		"rw=randread bssplit=4k/50:6k/50":                             {at(0), func(p load.JobPlan) bool { return p.AlignBytes == 2048 && p.BlockMin == 4096 && p.BlockMax == 6144 }},
		"rw=randread bs=8k blockalign=1k":                             {at(1 << 20), func(p load.JobPlan) bool { return p.AlignBytes == 1024 }},
		"rw=randread bsrange=4k-64k bs_unaligned":                     {at(0), func(p load.JobPlan) bool { return p.AlignBytes == 512 }},
		"rw=read numjobs=4":                                           {at(0), func(p load.JobPlan) bool { return p.SameRegion && p.Clones == 4 }},
		"rw=read numjobs=4 offset_increment=1g":                       {at(0), func(p load.JobPlan) bool { return !p.SameRegion }},
		"rw=randread numjobs=4":                                       {at(0), func(p load.JobPlan) bool { return !p.SameRegion }},
		"rw=read rate_iops=100":                                       {at(0), func(p load.JobPlan) bool { return p.Linear }},
		"rw=read rate=1m":                                             {at(0), func(p load.JobPlan) bool { return p.Linear }},
		"rw=read rate_iops=9 rate_process=poisson":                    {at(0), func(p load.JobPlan) bool { return !p.Linear }},
		"rw=write fsync=1":                                            {at(0), func(p load.JobPlan) bool { return p.Writes && p.Flushes }},
		"rw=write sync=1":                                             {at(0), func(p load.JobPlan) bool { return p.Flushes }},
		"rw=write":                                                    {at(0), func(p load.JobPlan) bool { return !p.Flushes && !p.Direct && p.Reducible == 0 }},
		"rw=write zero_buffers":                                       {at(0), func(p load.JobPlan) bool { return p.Reducible == 1 }},
		"rw=write buffer_pattern=0xff":                                {at(0), func(p load.JobPlan) bool { return p.Reducible == 1 }},
		"rw=read zero_buffers":                                        {at(0), func(p load.JobPlan) bool { return p.Reducible == 0 }},
		"rw=write buffer_compress_percentage=60":                      {at(0), func(p load.JobPlan) bool { return math.Abs(p.Reducible-0.6) < 1e-9 }},
		"rw=write dedupe_percentage=50 buffer_compress_percentage=50": {at(0), func(p load.JobPlan) bool { return math.Abs(p.Reducible-0.75) < 1e-9 }},
		"rw=randread norandommap":                                     {at(0), func(p load.JobPlan) bool { return p.NoRandomMap }},
		"rw=randread thinktime=5":                                     {at(0), func(p load.JobPlan) bool { return p.Pauses }},
		"rw=randread ramp_time=5":                                     {at(0), func(p load.JobPlan) bool { return p.Pauses }},
		"rw=randread startdelay=5":                                    {at(0), func(p load.JobPlan) bool { return p.Pauses }},
	} {
		file, issues := fiojob.Parse("job.fio", "[job]\nfilename=/dev/sdb\nsize=1g\n"+strings.Join(strings.Fields(text), "\n")+"\n", fiojob.Options{})
		if err := issues.Err(); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		job := file.Jobs()[0]
		if p := jobplan.Of(&job, c.clones); !c.is(p) {
			t.Errorf("%s: %+v", text, p)
		}
	}
}
