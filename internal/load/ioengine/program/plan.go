package program

import (
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/jobplan"
)

// Plan tells a reader what the job does.
func (s *Job) Plan() load.JobPlan {
	j := &s.Fio
	var regions []extent.Extent
	for _, c := range s.Clones {
		for _, stream := range c.Streams {
			regions = append(regions, extent.Extent{Offset: stream.Region.Start})
		}
	}
	plan := jobplan.Of(j, regions)
	plan.QueueDepth, plan.Clones, plan.Reads = s.Depth, len(s.Clones), s.Reads
	switch {
	case s.Reads && s.Writes && blockSizes(j, fiojob.Read) != blockSizes(j, fiojob.Write):
		plan.BlockSizes = blockSizes(j, fiojob.Read) + "," + blockSizes(j, fiojob.Write)
	case s.Reads:
		plan.BlockSizes = blockSizes(j, fiojob.Read)
	case s.Trims:
		plan.BlockSizes = blockSizes(j, fiojob.Trim)
	default:
		plan.BlockSizes = blockSizes(j, fiojob.Write)
	}
	for _, c := range s.Clones {
		for d, rate := range c.Rate {
			if c.InBytes && rate > 0 {
				rate /= s.Sizes[d].Mean()
			}
			plan.RateIOPS += rate
		}
		for _, stream := range c.Streams {
			plan.SizeBytes += stream.Region.Used()
		}
	}
	return plan
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
