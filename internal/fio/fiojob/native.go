package fiojob

import (
	"math"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// native lists the options that have a typed meaning here.
var native = []spec{
	{name: "name", does: "name of the job in reports; the section's otherwise", apply: setName},
	{name: "filename", does: "files or devices, with : between them", apply: setFilename},
	{name: "directory", does: "folder in front of the names of files", apply: setDirectory},
	{name: "filename_format", does: "names of files where filename gives none", apply: textOf(func(j *Job) *string { return &j.FilenameFormat })},
	{name: "nrfiles", does: "number of files of a clone; that of filename counts where it is set", apply: count(func(j *Job) *int { return &j.NrFiles }, 1, math.MaxInt32)},
	{name: "openfiles", does: "files open at a time", apply: count(func(j *Job) *int { return &j.OpenFiles }, 1, math.MaxInt32)},

	{name: "rw", does: "directions and order of operations", apply: setReadWrite},
	{name: "rw_sequencer", does: "whether the operations after a random offset go on or repeat it", apply: choice(func(j *Job) *string { return &j.RWSequencer },
		[]string{"sequential", "identical"}, nil)},
	{name: "rwmixread", does: "share of reads in percent", apply: setMix(false)},
	{name: "rwmixwrite", does: "share of writes in percent", apply: setMix(true)},
	{name: "bs", does: "block size, by direction", apply: setBlockSize},
	{name: "bsrange", does: "smallest and largest block, by direction", apply: setBlockRange},
	{name: "bssplit", does: "block sizes with their shares, by direction", apply: setBlockSplit},
	{name: "ba", does: "alignment of random offsets, by direction", apply: bytesTriple(func(j *Job) *[3]int64 { return &j.BlockAlign }, 1, syntax.BlockBytesMax)},
	{name: "bs_unaligned", does: "block sizes of any length, not only multiples of the smallest", apply: flag(func(j *Job) *bool { return &j.BlockUnaligned })},
	{name: "bs_is_seq_rand", does: "the first block size is for sequential, the second for random operations", apply: boolean(func(j *Job) *bool { return &j.BlockByOrder })},
	{name: "serialize_overlap", does: "an operation waits for those in flight that it overlaps", apply: boolean(func(j *Job) *bool { return &j.SerializeOverlap })},
	{name: "percentage_random", does: "share of random operations, by direction", apply: countTriple(0, 100, func(j *Job, d Direction, v int64) {
		j.PercentRandom[d] = int(v)
	})},
	{name: "random_generator", does: "tausworthe, tausworthe64, lfsr: the generator is always the engine's own; with lfsr each block comes once in a pass whatever norandommap says",
		apply: word(func(j *Job) *bool { return &j.LFSR }, "lfsr", "tausworthe", "lfsr", "tausworthe64")},
	{name: "norandommap", does: "random offsets may repeat within a pass", apply: flag(func(j *Job) *bool { return &j.NoRandomMap })},

	{name: "size", does: "bytes that a clone transfers, and its region", apply: size(func(j *Job) *Size { return &j.Size })},
	{name: "filesize", does: "end of the region on each file", apply: setFileSize},
	{name: "offset", does: "start of the region", apply: size(func(j *Job) *Size { return &j.Offset })},
	{name: "offset_align", does: "what a percentage of offset is rounded up to", apply: bytesOf(func(j *Job) *int64 { return &j.OffsetAlign }, 0, math.MaxInt64)},
	{name: "offset_increment", does: "distance between the starts of clones", apply: size(func(j *Job) *Size { return &j.OffsetIncrement })},
	{name: "io_size", does: "bytes to transfer where that is not the size of the region", apply: size(func(j *Job) *Size { return &j.IOSize })},
	{name: "zonemode", does: "none, or strided: work in one window after the other", apply: setZoneMode},
	{name: "zonesize", does: "bytes to transfer in a window", apply: bytesOf(func(j *Job) *int64 { return &j.ZoneSize }, 0, math.MaxInt64)},
	{name: "zonerange", does: "length of a window", apply: bytesOf(func(j *Job) *int64 { return &j.ZoneRange }, 0, math.MaxInt64)},
	{name: "zoneskip", does: "gap between windows", apply: setZoneSkip},

	{name: "ioengine", does: "how operations are submitted", apply: setEngine},
	{name: "iodepth", does: "operations in flight", apply: count(func(j *Job) *int { return &j.IODepth }, 1, 1<<16)},
	{name: "iodepth_batch", does: "operations submitted at a time", apply: count(func(j *Job) *int { return &j.IODepthBatch }, 0, 1<<16)},
	{name: "iodepth_batch_complete_min", does: "completions to wait for at a time, at least", apply: count(func(j *Job) *int { return &j.IODepthBatchCompleteMin }, 0, 1<<16)},
	{name: "iodepth_batch_complete_max", does: "completions taken at a time, at most", apply: count(func(j *Job) *int { return &j.IODepthBatchCompleteMax }, 0, 1<<16)},
	{name: "iodepth_low", does: "operations in flight at which submission starts again", apply: count(func(j *Job) *int { return &j.IODepthLow }, 0, 1<<16)},
	{name: "direct", does: "past the page cache", apply: boolean(func(j *Job) *bool { return &j.Direct })},
	{name: "buffered", does: "through the page cache; the opposite of direct", apply: not(func(j *Job) *bool { return &j.Direct })},
	{name: "sync", does: "writes return when they are on the medium", apply: choice(func(j *Job) *string { return &j.Sync }, []string{"none", "sync", "dsync"},
		map[string]string{"0": "none", "1": "sync"})},
	{name: "write_hint", does: "expected lifetime of written data, passed to the kernel", apply: choice(func(j *Job) *string { return &j.WriteHint },
		[]string{"none", "short", "medium", "long", "extreme"}, nil)},
	{name: "nowait", does: "operations fail instead of blocking (RWF_NOWAIT)", apply: boolean(func(j *Job) *bool { return &j.NoWait })},
	{name: "uncached", does: "buffered operations leave nothing in the page cache (RWF_DONTCACHE)", apply: boolean(func(j *Job) *bool { return &j.Uncached })},
	{name: "atomic", does: "writes are there as a whole or not at all after a crash (RWF_ATOMIC); implies direct access", apply: boolean(func(j *Job) *bool { return &j.Atomic })},
	{name: "force_async", does: "every so many operations the kernel's own threads do one (IOSQE_ASYNC)", apply: count(func(j *Job) *int { return &j.ForceAsync }, 0, math.MaxInt32)},
	{name: "fsync", does: "flush after every so many writes", apply: count(func(j *Job) *int { return &j.FSync }, 0, math.MaxInt32)},
	{name: "fdatasync", does: "flush data only after every so many writes", apply: count(func(j *Job) *int { return &j.FDataSync }, 0, math.MaxInt32)},
	{name: "end_fsync", does: "flush at the end", apply: boolean(func(j *Job) *bool { return &j.EndFSync })},

	{name: "numjobs", does: "clones of the job", apply: count(func(j *Job) *int { return &j.NumJobs }, 1, clonesMax)},
	{name: "runtime", does: "bound on time", apply: duration(func(j *Job) *time.Duration { return &j.Runtime }, time.Second)},
	{name: "time_based", does: "go on until runtime is reached", apply: flag(func(j *Job) *bool { return &j.TimeBased })},
	{name: "ramp_time", does: "time before counting", apply: duration(func(j *Job) *time.Duration { return &j.RampTime }, time.Second)},
	{name: "ramp_size", does: "bytes that a job moves before counting; all jobs of a group together with group_reporting", apply: bytesOf(func(j *Job) *int64 { return &j.RampSize }, 0, math.MaxInt64)},
	{name: "startdelay", does: "time before starting", apply: setStartDelay},
	{name: "loops", does: "repetitions of the whole job", apply: count(func(j *Job) *int { return &j.Loops }, 1, math.MaxInt32)},
	{name: "number_ios", does: "bound on operations", apply: bytesOf(func(j *Job) *int64 { return &j.NumberIOs }, 0, math.MaxInt64)},
	{name: "stonewall", does: "wait for all jobs above", apply: flag(func(j *Job) *bool { return &j.Stonewall })},
	{name: "new_group", does: "start a reporting group", apply: flag(func(j *Job) *bool { return &j.newGroup })},
	{name: "group_reporting", does: "clones of a group are reported as one", report: true, apply: flag(func(j *Job) *bool { return &j.GroupReporting })},
	{name: "description", does: "text in reports of bragg io", report: true},
	{name: "percentile_list", does: "percentiles that bragg io shows", report: true, apply: checkPercentiles},
	{name: "slat_percentiles", does: "percentiles of submission, by bragg io", report: true},
	{name: "clat_percentiles", does: "percentiles of service times, by bragg io; on", report: true},
	{name: "lat_percentiles", does: "percentiles of response times, by bragg io", report: true},
	{name: "unified_rw_reporting", does: "directions apart, mixed or both, by bragg io", report: true},
	{name: "thinktime", does: "pause between operations", apply: duration(func(j *Job) *time.Duration { return &j.ThinkTime }, time.Microsecond)},
	{name: "thinktime_blocks", does: "operations between two pauses", apply: count(func(j *Job) *int { return &j.ThinkTimeBlocks }, 1, math.MaxInt32)},

	{name: "rate", does: "bytes a second, for each clone and direction", apply: bytesTriple(func(j *Job) *[3]int64 { return &j.Rate }, 0, math.MaxInt64)},
	{name: "rate_iops", does: "operations a second, for each clone and direction", apply: countTriple(0, math.MaxInt32, func(j *Job, d Direction, v int64) {
		j.RateIOPS[d] = float64(v)
	})},
	{name: "rate_process", does: "even gaps, or those of a Poisson process", apply: choice(func(j *Job) *string { return &j.RateProcess }, []string{"linear", "poisson"}, nil)},

	{name: "read_iolog", does: "logs of fio to replay, with : between those of clones", elsewhere: syntax.Refused, why: notHost, apply: setReplayLogs},
	{name: "write_iolog", does: "file that gets what the job does, as a log of version 3", elsewhere: syntax.Refused, why: notHost, apply: textOf(func(j *Job) *string { return &j.WriteIOLog })},
	{name: "replay_no_stall", does: "replay as fast as the queue depth allows instead of at the log's times", elsewhere: syntax.Refused, why: notHost, apply: boolean(func(j *Job) *bool { return &j.Replay.NoStall })},
	{name: "replay_redirect", does: "the one file or device that replaces all of the log", elsewhere: syntax.Refused, why: notHost, apply: textOf(func(j *Job) *string { return &j.Replay.Redirect })},
	{name: "replay_time_scale", does: "how fast the log's time goes, in percent: 200 is twice as fast", elsewhere: syntax.Refused, why: notHost, apply: count(func(j *Job) *int { return &j.Replay.SpeedPercent }, 1, math.MaxInt32)},
	{name: "replay_scale", does: "what offsets of the log are divided by", elsewhere: syntax.Refused, why: notHost, apply: bytesOf(func(j *Job) *int64 { return &j.Replay.Scale }, 1, math.MaxInt32)},
	{name: "replay_align", does: "what offsets of the log are lowered to a multiple of, a power of two", elsewhere: syntax.Refused, why: notHost, apply: setReplayAlign},
	{name: "replay_skip", does: "what is left out of the log: read, write, trim, sync, with commas between them", elsewhere: syntax.Refused, why: notHost, apply: setReplaySkip},

	{name: "continue_on_error", does: "which errors a job outlives", apply: choice(func(j *Job) *string { return &j.ContinueOnError },
		[]string{"none", "read", "write", "io", "verify", "all"}, map[string]string{"0": "none", "1": "all"})},
	{name: "zero_buffers", does: "writes are zeros", apply: flag(func(j *Job) *bool { return &j.ZeroBuffers })},
	{name: "refill_buffers", does: "every write has new content", apply: flag(func(j *Job) *bool { return &j.RefillBuffers })},
	{name: "scramble_buffers", does: "each block of a write is made a little different", apply: boolean(func(j *Job) *bool { return &j.ScrambleBuffers })},
	{name: "buffer_compress_percentage", does: "share of what is written that compressors remove", apply: count(func(j *Job) *int { return &j.Content.CompressPercent }, 0, 100)},
	{name: "buffer_compress_chunk", does: "how much data holds that share", apply: bytesOf(func(j *Job) *int64 { return &j.Content.CompressChunkBytes }, 0, syntax.BlockBytesMax)},
	{name: "dedupe_percentage", does: "share of writes that repeat an earlier one", apply: count(func(j *Job) *int { return &j.Content.DedupePercent }, 0, 100)},
	{name: "dedupe_mode", does: "which earlier one: any, or one of a working set", apply: choice(func(j *Job) *string { return &j.Content.DedupeMode }, []string{"repeat", "working_set"}, nil)},
	{name: "dedupe_working_set_percentage", does: "size of the working set, of size", apply: count(func(j *Job) *int { return &j.Content.DedupeSetPercent }, 0, 100)},
	{name: "dedupe_global", does: "clones and jobs share one working set", apply: boolean(func(j *Job) *bool { return &j.Content.DedupeGlobal })},
	{name: "buffer_pattern", does: "what is written; a file as a pattern is refused", apply: setPattern},
	{name: "randseed", does: "seed of all random choices", apply: setSeed},
	{name: "randrepeat", does: "the same choices in every run", apply: boolean(func(j *Job) *bool { return &j.RandRepeat })},
	{name: "allrandrepeat", does: "the same choices in every run", apply: boolean(func(j *Job) *bool { return &j.RandRepeat })},

	{name: "random_distribution", does: "how random offsets are drawn", apply: setDistribution},
	{name: "file_service_type", does: "which file comes next: roundrobin and random (both with :n operations on each), sequential, zipf, pareto, normal", apply: setFileService},
}
