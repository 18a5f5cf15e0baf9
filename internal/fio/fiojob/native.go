package fiojob

import (
	"math"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// native lists the options that have a typed meaning here.
var native = []spec{
	{name: "name", does: "job name in reports; default: the name of the section", apply: setName},
	{name: "filename", does: "files or devices, separated by :", apply: setFilename},
	{name: "directory", does: "folder prepended to file names", apply: setDirectory},
	{name: "filename_format", does: "format of file names for jobs without filename", apply: textOf(func(j *Job) *string { return &j.FilenameFormat })},
	{name: "nrfiles", does: "number of files of a clone; with filename, the number of files listed there", apply: count(func(j *Job) *int { return &j.NrFiles }, 1, math.MaxInt32)},
	{name: "openfiles", does: "number of files open at a time", apply: count(func(j *Job) *int { return &j.OpenFiles }, 1, math.MaxInt32)},

	{name: "rw", does: "direction and order of operations", apply: setReadWrite},
	{name: "rw_sequencer", does: "whether the operations after a random offset are sequential or repeat that offset", apply: choice(func(j *Job) *string { return &j.RWSequencer },
		[]string{"sequential", "identical"}, nil)},
	{name: "rwmixread", does: "share of reads in percent", apply: setMix(false)},
	{name: "rwmixwrite", does: "share of writes in percent", apply: setMix(true)},
	{name: "bs", does: "block size, by direction", apply: setBlockSize},
	{name: "bsrange", does: "smallest and largest block size, by direction", apply: setBlockRange},
	{name: "bssplit", does: "block sizes with their shares, by direction", apply: setBlockSplit},
	{name: "ba", does: "alignment of random offsets, by direction", apply: bytesTriple(func(j *Job) *[3]int64 { return &j.BlockAlign }, 1, syntax.BlockBytesMax)},
	{name: "bs_unaligned", does: "block sizes of any length, not only multiples of the smallest one", apply: flag(func(j *Job) *bool { return &j.BlockUnaligned })},
	{name: "bs_is_seq_rand", does: "use the first block size for sequential operations, the second for random ones", apply: boolean(func(j *Job) *bool { return &j.BlockByOrder })},
	{name: "serialize_overlap", does: "delay an operation until the operations in flight that overlap it have completed", apply: boolean(func(j *Job) *bool { return &j.SerializeOverlap })},
	{name: "percentage_random", does: "share of random operations, by direction", apply: countTriple(0, 100, func(j *Job, d Direction, v int64) {
		j.PercentRandom[d] = int(v)
	})},
	{name: "random_generator", does: "tausworthe, tausworthe64 or lfsr: the engine always uses its own generator; with lfsr, each block is accessed once per pass, even with norandommap",
		apply: word(func(j *Job) *bool { return &j.LFSR }, "lfsr", "tausworthe", "lfsr", "tausworthe64")},
	{name: "norandommap", does: "allow random offsets to repeat within a pass", apply: flag(func(j *Job) *bool { return &j.NoRandomMap })},

	{name: "size", does: "bytes that a clone transfers, and the length of its region", apply: size(func(j *Job) *Size { return &j.Size })},
	{name: "filesize", does: "end of the region on each file", apply: setFileSize},
	{name: "offset", does: "start of the region", apply: size(func(j *Job) *Size { return &j.Offset })},
	{name: "offset_align", does: "unit to which a percentage in offset is rounded up", apply: bytesOf(func(j *Job) *int64 { return &j.OffsetAlign }, 0, math.MaxInt64)},
	{name: "offset_increment", does: "distance between the starting offsets of clones", apply: size(func(j *Job) *Size { return &j.OffsetIncrement })},
	{name: "io_size", does: "bytes to transfer, if different from the size of the region", apply: size(func(j *Job) *Size { return &j.IOSize })},
	{name: "zonemode", does: "none, or strided: access one zone after the other", apply: setZoneMode},
	{name: "zonesize", does: "bytes to transfer per zone", apply: bytesOf(func(j *Job) *int64 { return &j.ZoneSize }, 0, math.MaxInt64)},
	{name: "zonerange", does: "length of a zone", apply: bytesOf(func(j *Job) *int64 { return &j.ZoneRange }, 0, math.MaxInt64)},
	{name: "zoneskip", does: "gap between zones", apply: setZoneSkip},

	{name: "ioengine", does: "method of submitting operations", apply: setEngine},
	{name: "iodepth", does: "number of operations in flight", apply: count(func(j *Job) *int { return &j.IODepth }, 1, 1<<16)},
	{name: "iodepth_batch", does: "number of operations submitted at a time", apply: count(func(j *Job) *int { return &j.IODepthBatch }, 0, 1<<16)},
	{name: "iodepth_batch_complete_min", does: "minimum number of completions to wait for at a time", apply: count(func(j *Job) *int { return &j.IODepthBatchCompleteMin }, 0, 1<<16)},
	{name: "iodepth_batch_complete_max", does: "maximum number of completions collected at a time", apply: count(func(j *Job) *int { return &j.IODepthBatchCompleteMax }, 0, 1<<16)},
	{name: "iodepth_low", does: "number of operations in flight at which submission resumes", apply: count(func(j *Job) *int { return &j.IODepthLow }, 0, 1<<16)},
	{name: "direct", does: "bypass the page cache", apply: boolean(func(j *Job) *bool { return &j.Direct })},
	{name: "buffered", does: "use the page cache; the opposite of direct", apply: not(func(j *Job) *bool { return &j.Direct })},
	{name: "sync", does: "synchronous writes, which return when the data is on the medium", apply: choice(func(j *Job) *string { return &j.Sync }, []string{"none", "sync", "dsync"},
		map[string]string{"0": "none", "1": "sync"})},
	{name: "write_hint", does: "expected lifetime of written data, passed to the kernel", apply: choice(func(j *Job) *string { return &j.WriteHint },
		[]string{"none", "short", "medium", "long", "extreme"}, nil)},
	{name: "nowait", does: "fail operations instead of blocking (RWF_NOWAIT)", apply: boolean(func(j *Job) *bool { return &j.NoWait })},
	{name: "uncached", does: "buffered operations that leave no data in the page cache (RWF_DONTCACHE)", apply: boolean(func(j *Job) *bool { return &j.Uncached })},
	{name: "atomic", does: "after a crash, each write is complete or absent (RWF_ATOMIC); implies direct access", apply: boolean(func(j *Job) *bool { return &j.Atomic })},
	{name: "force_async", does: "interval, in operations, at which one is executed by the kernel's own threads (IOSQE_ASYNC)", apply: count(func(j *Job) *int { return &j.ForceAsync }, 0, math.MaxInt32)},
	{name: "fsync", does: "number of writes after which to flush", apply: count(func(j *Job) *int { return &j.FSync }, 0, math.MaxInt32)},
	{name: "fdatasync", does: "number of writes after which to flush, data only", apply: count(func(j *Job) *int { return &j.FDataSync }, 0, math.MaxInt32)},
	{name: "end_fsync", does: "flush at the end of the job", apply: boolean(func(j *Job) *bool { return &j.EndFSync })},

	{name: "numjobs", does: "number of clones of the job", apply: count(func(j *Job) *int { return &j.NumJobs }, 1, clonesMax)},
	{name: "runtime", does: "limit on time", apply: duration(func(j *Job) *time.Duration { return &j.Runtime }, time.Second)},
	{name: "time_based", does: "continue until runtime is reached", apply: flag(func(j *Job) *bool { return &j.TimeBased })},
	{name: "ramp_time", does: "time before operations count", apply: duration(func(j *Job) *time.Duration { return &j.RampTime }, time.Second)},
	{name: "ramp_size", does: "bytes that a job transfers before operations count; with group_reporting, all jobs of a group together", apply: bytesOf(func(j *Job) *int64 { return &j.RampSize }, 0, math.MaxInt64)},
	{name: "startdelay", does: "delay before the start", apply: setStartDelay},
	{name: "loops", does: "repetitions of the whole job", apply: count(func(j *Job) *int { return &j.Loops }, 1, math.MaxInt32)},
	{name: "number_ios", does: "limit on the number of operations", apply: bytesOf(func(j *Job) *int64 { return &j.NumberIOs }, 0, math.MaxInt64)},
	{name: "stonewall", does: "wait for all jobs above", apply: flag(func(j *Job) *bool { return &j.Stonewall })},
	{name: "new_group", does: "start a reporting group", apply: flag(func(j *Job) *bool { return &j.newGroup })},
	{name: "group_reporting", does: "report the clones of a group as one", report: true, apply: flag(func(j *Job) *bool { return &j.GroupReporting })},
	{name: "description", does: "description in reports of bragg io", report: true},
	{name: "percentile_list", does: "percentiles in reports of bragg io", report: true, apply: checkPercentiles},
	{name: "slat_percentiles", does: "percentiles of submission latency in bragg io", report: true},
	{name: "clat_percentiles", does: "percentiles of service times in bragg io; default: on", report: true},
	{name: "lat_percentiles", does: "percentiles of response times in bragg io", report: true},
	{name: "unified_rw_reporting", does: "report directions separately, mixed or both, in bragg io", report: true},
	{name: "thinktime", does: "pause between operations", apply: duration(func(j *Job) *time.Duration { return &j.ThinkTime }, time.Microsecond)},
	{name: "thinktime_blocks", does: "number of operations between pauses", apply: count(func(j *Job) *int { return &j.ThinkTimeBlocks }, 1, math.MaxInt32)},

	{name: "rate", does: "bytes per second, for each clone and direction", apply: bytesTriple(func(j *Job) *[3]int64 { return &j.Rate }, 0, math.MaxInt64)},
	{name: "rate_iops", does: "operations per second, for each clone and direction", apply: countTriple(0, math.MaxInt32, func(j *Job, d Direction, v int64) {
		j.RateIOPS[d] = float64(v)
	})},
	{name: "rate_process", does: "constant intervals between operations, or those of a Poisson process", apply: choice(func(j *Job) *string { return &j.RateProcess }, []string{"linear", "poisson"}, nil)},

	{name: "read_iolog", does: "fio logs to replay; those of several clones are separated by :", elsewhere: syntax.Refused, why: notHost, apply: setReplayLogs},
	{name: "write_iolog", does: "file to which the job's operations are written, as a log of version 3", elsewhere: syntax.Refused, why: notHost, apply: textOf(func(j *Job) *string { return &j.WriteIOLog })},
	{name: "replay_no_stall", does: "replay as fast as the queue depth allows, ignoring the times in the log", elsewhere: syntax.Refused, why: notHost, apply: boolean(func(j *Job) *bool { return &j.Replay.NoStall })},
	{name: "replay_redirect", does: "one file or device for all operations of the log", elsewhere: syntax.Refused, why: notHost, apply: textOf(func(j *Job) *string { return &j.Replay.Redirect })},
	{name: "replay_time_scale", does: "speed of the replay in percent; 200 is twice as fast", elsewhere: syntax.Refused, why: notHost, apply: count(func(j *Job) *int { return &j.Replay.SpeedPercent }, 1, math.MaxInt32)},
	{name: "replay_scale", does: "divisor for offsets of the log", elsewhere: syntax.Refused, why: notHost, apply: bytesOf(func(j *Job) *int64 { return &j.Replay.Scale }, 1, math.MaxInt32)},
	{name: "replay_align", does: "alignment, a power of two, to which offsets of the log are rounded down", elsewhere: syntax.Refused, why: notHost, apply: setReplayAlign},
	{name: "replay_skip", does: "operations of the log to skip: read, write, trim, sync, separated by commas", elsewhere: syntax.Refused, why: notHost, apply: setReplaySkip},

	{name: "continue_on_error", does: "errors after which the job continues", apply: choice(func(j *Job) *string { return &j.ContinueOnError },
		[]string{"none", "read", "write", "io", "verify", "all"}, map[string]string{"0": "none", "1": "all"})},
	{name: "zero_buffers", does: "write zeros", apply: flag(func(j *Job) *bool { return &j.ZeroBuffers })},
	{name: "refill_buffers", does: "new content for every write", apply: flag(func(j *Job) *bool { return &j.RefillBuffers })},
	{name: "scramble_buffers", does: "slightly modify each block of a write", apply: boolean(func(j *Job) *bool { return &j.ScrambleBuffers })},
	{name: "buffer_compress_percentage", does: "share of the written data that compression removes", apply: count(func(j *Job) *int { return &j.Content.CompressPercent }, 0, 100)},
	{name: "buffer_compress_chunk", does: "size of the chunks to which buffer_compress_percentage applies", apply: bytesOf(func(j *Job) *int64 { return &j.Content.CompressChunkBytes }, 0, syntax.BlockBytesMax)},
	{name: "dedupe_percentage", does: "share of writes that repeat the data of an earlier one", apply: count(func(j *Job) *int { return &j.Content.DedupePercent }, 0, 100)},
	{name: "dedupe_mode", does: "earlier write to repeat: any, or one from a working set", apply: choice(func(j *Job) *string { return &j.Content.DedupeMode }, []string{"repeat", "working_set"}, nil)},
	{name: "dedupe_working_set_percentage", does: "size of the working set, as a percentage of size", apply: count(func(j *Job) *int { return &j.Content.DedupeSetPercent }, 0, 100)},
	{name: "dedupe_global", does: "share one working set among clones and jobs", apply: boolean(func(j *Job) *bool { return &j.Content.DedupeGlobal })},
	{name: "buffer_pattern", does: "content of writes; a file as the pattern is refused", apply: setPattern},
	{name: "randseed", does: "seed of all random choices", apply: setSeed},
	{name: "randrepeat", does: "same random choices in every run", apply: boolean(func(j *Job) *bool { return &j.RandRepeat })},
	{name: "allrandrepeat", does: "same random choices in every run", apply: boolean(func(j *Job) *bool { return &j.RandRepeat })},

	{name: "random_distribution", does: "distribution of random offsets", apply: setDistribution},
	{name: "file_service_type", does: "selection of the next file: roundrobin or random (both with :n operations on each), sequential, zipf, pareto, normal", apply: setFileService},
}
