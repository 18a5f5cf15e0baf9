package fiojob

import (
	"math"
	"time"
)

// native lists the options that have a typed meaning here.
var native = []spec{
	{name: "name", apply: setName},
	{name: "filename", apply: setFilename},
	{name: "directory", apply: textOf(func(j *Job) *string { return &j.Directory })},
	{name: "filename_format", apply: textOf(func(j *Job) *string { return &j.FilenameFormat })},
	{name: "nrfiles", apply: count(func(j *Job) *int { return &j.NrFiles }, 1, math.MaxInt32)},
	{name: "openfiles", apply: count(func(j *Job) *int { return &j.OpenFiles }, 1, math.MaxInt32)},

	{name: "rw", apply: setReadWrite},
	{name: "rw_sequencer", apply: choice(func(j *Job) *string { return &j.RWSequencer },
		[]string{"sequential", "identical"}, nil)},
	{name: "rwmixread", apply: setMix(false)},
	{name: "rwmixwrite", apply: setMix(true)},
	{name: "bs", apply: setBlockSize},
	{name: "bsrange", apply: setBlockRange},
	{name: "bssplit", apply: setBlockSplit},
	{name: "ba", apply: bytesTriple(func(j *Job) *[3]int64 { return &j.BlockAlign }, 1, blockBytesMax)},
	{name: "bs_unaligned", apply: flag(func(j *Job) *bool { return &j.BlockUnaligned })},
	{name: "bs_is_seq_rand", apply: boolean(func(j *Job) *bool { return &j.BlockByOrder })},
	{name: "serialize_overlap", apply: boolean(func(j *Job) *bool { return &j.SerializeOverlap })},
	{name: "percentage_random", apply: countTriple(0, 100, func(j *Job, d Direction, v int64) {
		j.PercentRandom[d] = int(v)
	})},
	{name: "norandommap", apply: flag(func(j *Job) *bool { return &j.NoRandomMap })},

	{name: "size", apply: size(func(j *Job) *Size { return &j.Size })},
	{name: "filesize", apply: setFileSize},
	{name: "offset", apply: size(func(j *Job) *Size { return &j.Offset })},
	{name: "offset_align", apply: bytesOf(func(j *Job) *int64 { return &j.OffsetAlign }, 0, math.MaxInt64)},
	{name: "offset_increment", apply: size(func(j *Job) *Size { return &j.OffsetIncrement })},
	{name: "io_size", apply: size(func(j *Job) *Size { return &j.IOSize })},
	{name: "zonemode", apply: setZoneMode},
	{name: "zonesize", apply: bytesOf(func(j *Job) *int64 { return &j.ZoneSize }, 0, math.MaxInt64)},
	{name: "zonerange", apply: bytesOf(func(j *Job) *int64 { return &j.ZoneRange }, 0, math.MaxInt64)},
	{name: "zoneskip", apply: setZoneSkip},

	{name: "ioengine", apply: setEngine},
	{name: "iodepth", apply: count(func(j *Job) *int { return &j.IODepth }, 1, 1<<16)},
	{name: "iodepth_batch", apply: count(func(j *Job) *int { return &j.IODepthBatch }, 0, 1<<16)},
	{name: "iodepth_batch_complete_min", apply: count(func(j *Job) *int { return &j.IODepthBatchCompleteMin }, 0, 1<<16)},
	{name: "iodepth_batch_complete_max", apply: count(func(j *Job) *int { return &j.IODepthBatchCompleteMax }, 0, 1<<16)},
	{name: "iodepth_low", apply: count(func(j *Job) *int { return &j.IODepthLow }, 0, 1<<16)},
	{name: "direct", apply: boolean(func(j *Job) *bool { return &j.Direct })},
	{name: "buffered", apply: setBuffered},
	{name: "sync", apply: choice(func(j *Job) *string { return &j.Sync }, []string{"none", "sync", "dsync"},
		map[string]string{"0": "none", "1": "sync"})},
	{name: "write_hint", apply: choice(func(j *Job) *string { return &j.WriteHint },
		[]string{"none", "short", "medium", "long", "extreme"}, nil)},
	{name: "nowait", apply: boolean(func(j *Job) *bool { return &j.NoWait })},
	{name: "uncached", apply: boolean(func(j *Job) *bool { return &j.Uncached })},
	{name: "force_async", apply: count(func(j *Job) *int { return &j.ForceAsync }, 0, math.MaxInt32)},
	{name: "fsync", apply: count(func(j *Job) *int { return &j.FSync }, 0, math.MaxInt32)},
	{name: "fdatasync", apply: count(func(j *Job) *int { return &j.FDataSync }, 0, math.MaxInt32)},
	{name: "end_fsync", apply: boolean(func(j *Job) *bool { return &j.EndFSync })},

	{name: "numjobs", apply: count(func(j *Job) *int { return &j.NumJobs }, 1, clonesMax)},
	{name: "runtime", apply: duration(func(j *Job) *time.Duration { return &j.Runtime }, time.Second)},
	{name: "time_based", apply: flag(func(j *Job) *bool { return &j.TimeBased })},
	{name: "ramp_time", apply: duration(func(j *Job) *time.Duration { return &j.RampTime }, time.Second)},
	{name: "startdelay", apply: setStartDelay},
	{name: "loops", apply: count(func(j *Job) *int { return &j.Loops }, 1, math.MaxInt32)},
	{name: "number_ios", apply: bytesOf(func(j *Job) *int64 { return &j.NumberIOs }, 0, math.MaxInt64)},
	{name: "stonewall", apply: flag(func(j *Job) *bool { return &j.Stonewall })},
	{name: "new_group", apply: flag(func(j *Job) *bool { return &j.newGroup })},
	{name: "group_reporting", report: true, apply: flag(func(j *Job) *bool { return &j.GroupReporting })},
	{name: "description", report: true},
	{name: "percentile_list", report: true},
	{name: "slat_percentiles", report: true},
	{name: "clat_percentiles", report: true},
	{name: "lat_percentiles", report: true},
	{name: "unified_rw_reporting", report: true},
	{name: "thinktime", apply: duration(func(j *Job) *time.Duration { return &j.ThinkTime }, time.Microsecond)},
	{name: "thinktime_blocks", apply: count(func(j *Job) *int { return &j.ThinkTimeBlocks }, 1, math.MaxInt32)},

	{name: "rate", apply: bytesTriple(func(j *Job) *[3]int64 { return &j.Rate }, 0, math.MaxInt64)},
	{name: "rate_iops", apply: countTriple(0, math.MaxInt32, func(j *Job, d Direction, v int64) {
		j.RateIOPS[d] = float64(v)
	})},
	{name: "rate_process", apply: choice(func(j *Job) *string { return &j.RateProcess }, []string{"linear", "poisson"}, nil)},

	{name: "continue_on_error", apply: choice(func(j *Job) *string { return &j.ContinueOnError },
		[]string{"none", "read", "write", "io", "verify", "all"}, map[string]string{"0": "none", "1": "all"})},
	{name: "zero_buffers", apply: flag(func(j *Job) *bool { return &j.ZeroBuffers })},
	{name: "refill_buffers", apply: flag(func(j *Job) *bool { return &j.RefillBuffers })},
	{name: "scramble_buffers", apply: boolean(func(j *Job) *bool { return &j.ScrambleBuffers })},
	{name: "buffer_compress_percentage", apply: count(func(j *Job) *int { return &j.Content.CompressPercent }, 0, 100)},
	{name: "buffer_compress_chunk", apply: bytesOf(func(j *Job) *int64 { return &j.Content.CompressChunkBytes }, 0, blockBytesMax)},
	{name: "dedupe_percentage", apply: count(func(j *Job) *int { return &j.Content.DedupePercent }, 0, 100)},
	{name: "dedupe_mode", apply: choice(func(j *Job) *string { return &j.Content.DedupeMode }, []string{"repeat", "working_set"}, nil)},
	{name: "dedupe_working_set_percentage", apply: count(func(j *Job) *int { return &j.Content.DedupeSetPercent }, 0, 100)},
	{name: "dedupe_global", apply: boolean(func(j *Job) *bool { return &j.Content.DedupeGlobal })},
	{name: "buffer_pattern", apply: setPattern},
	{name: "randseed", apply: setSeed},
	{name: "randrepeat", apply: boolean(func(j *Job) *bool { return &j.RandRepeat })},
	{name: "allrandrepeat", apply: boolean(func(j *Job) *bool { return &j.RandRepeat })},

	{name: "random_distribution", apply: setDistribution},
	{name: "verify", apply: only("only fio verifies data", "0")},
	{name: "file_service_type", apply: only("only fio has this order of files", "roundrobin", "roundrobin:1")},
}
