package fiojob

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// spec is one option of fio.
type spec struct {
	name   string
	class  Class
	why    string
	apply  apply // nil: the text is kept and has no typed meaning
	report bool  // only shapes fio's own output
	note   bool  // warn wherever it is used
}

// native lists the options that have a typed meaning here.
var native = []spec{
	{name: "name", apply: setName},
	{name: "filename", apply: setFilename},
	{name: "directory", apply: textOf(func(j *Job) *string { return &j.Directory })},
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
	{name: "percentage_random", apply: countTriple(0, 100, func(j *Job, d Direction, v int64) {
		j.PercentRandom[d] = int(v)
	})},
	{name: "norandommap", apply: flag(func(j *Job) *bool { return &j.NoRandomMap })},

	{name: "size", apply: size(func(j *Job) *Size { return &j.Size })},
	{name: "filesize", apply: setFileSize},
	{name: "offset", apply: size(func(j *Job) *Size { return &j.Offset })},
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
	{name: "dedupe_mode", apply: only("only fio has this order of duplicates", "repeat")},
	{name: "buffer_pattern", apply: setPattern},
	{name: "randseed", apply: setSeed},
	{name: "randrepeat", apply: boolean(func(j *Job) *bool { return &j.RandRepeat })},
	{name: "allrandrepeat", apply: boolean(func(j *Job) *bool { return &j.RandRepeat })},

	{name: "random_distribution", apply: setDistribution},
	{name: "verify", apply: only("only fio verifies data", "0")},
	{name: "file_service_type", apply: only("only fio has this order of files", "roundrobin", "roundrobin:1")},
}

// group lists options that share a class and a reason.
type group struct {
	class  Class
	why    string
	report bool
	note   bool
	names  string
}

var groups = []group{
	{class: Ignored, why: "it is a comment", report: true, names: "description"},
	{class: Ignored, why: "intervals and latency histograms are always recorded", report: true, names: `
		write_bw_log write_lat_log write_iops_log write_hist_log log_entries log_avg_msec log_hist_msec
		log_hist_coarseness log_max_value log_offset log_prio log_compression log_compression_cpus
		log_store_compressed log_unix_epoch log_alternate_epoch log_alternate_epoch_clock_id log_window_value
		log_issue_time per_job_logs bwavgtime iopsavgtime stats`},
	{class: Ignored, why: "the report chooses its own percentiles, units and sums", report: true, names: `
		clat_percentiles lat_percentiles slat_percentiles percentile_list significant_figures disk_util
		unified_rw_reporting kb_base unit_base block_error_percentiles error_dump`},
	{class: Ignored, why: "latency is always measured", names: `
		gtod_reduce disable_lat disable_clat disable_slat disable_bw_measurement clocksource gtod_cpu`},
	{class: Ignored, why: "the native engine has its own threads and memory", names: `
		thread mem iomem_align lockmem hugepage-size io_submit_mode thp`},
	{class: Ignored, why: "the native engine chooses how it submits", names: `
		hipri hipri_percentage fixedbufs registerfiles sqthread_poll sqthread_poll_cpu nonvectored userspace_reap`},
	// Never given to fio either: on a disk that is a file, unlink would delete it.
	{class: Ignored, report: true, why: "it concerns files that fio creates, and workloads use devices", names: `
		create_serialize create_fsync create_on_open allow_file_create allow_mounted_write fallocate
		filename_format unique_filename unlink unlink_each_loop lockfile`},
	{class: Ignored, why: "it prepares the page cache or files, and workloads use devices", names: `
		overwrite fadvise_hint invalidate pre_read`},
	{class: Ignored, why: "the native engine has one generator for random numbers", names: "random_generator"},
	{class: Ignored, why: "it matters with verify only", names: `
		do_verify verify_interval verify_offset verify_pattern verify_fatal verify_dump verify_async
		verify_backlog verify_backlog_batch verify_state_save verify_write_sequence verify_header_seed
		trim_verify_zero verify_async_cpus`},
	{class: Ignored, why: "fio itself does nothing with it", names: "softrandommap verifysort verifysort_nr"},
	{class: Ignored, note: true, report: true, why: "it belongs to a profile of fio that is not in use", names: `
		threads block dir load numruns test-duration device-names`},

	{class: Delegate, why: "only fio has it", names: `
		bs_unaligned bs_is_seq_rand serialize_overlap offset_align
		write_barrier sync_file_range atomic fsync_on_close create_only write_hint
		exitall exit_what exitall_on_error wait_for nice prio prioclass
		cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy
		thinktime_spin thinktime_blocks_type thinktime_iotime
		rate_min rate_cycle rate_ignore_thinktime rate_iops_min
		max_latency latency_target latency_window latency_percentile latency_run
		zonecapacity read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits zone_reset_threshold
		zone_reset_frequency flow flow_id flow_sleep steadystate steadystate_duration steadystate_ramp_time steadystate_check_interval
		dedupe_working_set_percentage dedupe_global
		ignore_error experimental_verify verify_only trim_percentage trim_backlog trim_backlog_batch
		verify_mode ramp_size sprandom`},
	{class: Delegate, why: "it is an option of one of fio's own I/O engines", names: `
		busy_poll brick clientname cluster_name clustername cmd_type cmdprio cmdprio_bssplit cmdprio_class
		cmdprio_percentage conf cpuchunks cpuload cpumode donorname exit_on_io_done force_async hostname http_host
		http_mode http_object_mode http_pass http_s3_key http_s3_keyid http_s3_region http_user http_verbose https
		inplace interface listen mss namenode nodelay nowait num_range pi_act pi_chk pingpong pool port protocol
		rbdname readfua fdp fdp_pli dataplacement plids skip_bad sg_write_mode single-instance stat_type stream_id
		touch_objects ttl uncached uri verb volume window_size write_mode writefua nfs_url`},

	{class: Refused, why: "it runs a program", names: "exec_prerun exec_postrun program arguments grace_time std_redirect"},
	{class: Refused, why: "it changes settings of the machine", names: "ioscheduler cgroup cgroup_weight cgroup_nodelete uid gid"},
	{class: Refused, why: "it opens files of the machine that are no devices of the VM", names: `
		opendir read_iolog read_iolog_chunked write_iolog replay_no_stall replay_redirect replay_scale replay_align
		replay_time_scale replay_skip merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters
		verify_state_load`},
	{class: Refused, why: "it writes past what the plan shows", names: "fill_device file_append"},
	{class: Refused, why: "it replaces the whole job by a built-in test of fio", names: "profile"},
}

// aliases maps other spellings to the canonical one.
var aliases = map[string]string{
	"readwrite": "rw", "blocksize": "bs", "blockalign": "ba", "blocksize_range": "bsrange",
	"blocksize_unaligned": "bs_unaligned", "iodepth_batch_submit": "iodepth_batch",
	"iodepth_batch_complete": "iodepth_batch_complete_min", "io_limit": "io_size", "fill_fs": "fill_device",
	"fileoffset": "offset", "nr_files": "nrfiles", "timeout": "runtime", "iomem": "mem", "mem_align": "iomem_align",
	"ratemin": "rate_min", "ratecycle": "rate_cycle", "wait_for_previous": "stonewall",
	"disable_bw": "disable_bw_measurement", "ss": "steadystate", "ss_dur": "steadystate_duration",
	"ss_ramp": "steadystate_ramp_time",
}

// checked gives options of groups, whose values are kept as text, a look at the value.
var checked = map[string]apply{
	"mem":            noFile(":"),
	"verify_pattern": noFile("'"),
}

// switches are options of groups that are 0 or 1; bareSwitches may also stand alone.
const (
	switches = `
		unique_filename serialize_overlap atomic overwrite do_verify verify_fatal verify_dump
		experimental_verify verify_state_save trim_verify_zero read_beyond_wp ignore_zone_limits rate_ignore_thinktime
		latency_run invalidate create_serialize create_fsync create_on_open create_only allow_file_create
		allow_mounted_write pre_read fsync_on_close unlink unlink_each_loop dedupe_global bs_is_seq_rand
		gtod_reduce disable_lat disable_clat disable_slat disable_bw_measurement`
	bareSwitches = "bs_unaligned verify_only exitall exitall_on_error thread hipri fixedbufs registerfiles sqthread_poll nonvectored"
)

// table joins native and groups by name.
var table = sync.OnceValue(func() map[string]spec {
	t := map[string]spec{}
	for _, s := range native {
		s.class = Native
		t[s.name] = s
	}
	for _, g := range groups {
		for name := range strings.FieldsSeq(g.names) {
			t[name] = spec{name: name, class: g.class, why: g.why, report: g.report, note: g.note}
		}
	}
	give := func(name string, check apply) {
		s := t[name]
		s.apply = check
		t[name] = s
	}
	for name := range strings.FieldsSeq(switches) {
		give(name, boolean(func(*Job) *bool { return new(bool) }))
	}
	for name := range strings.FieldsSeq(bareSwitches) {
		give(name, flag(func(*Job) *bool { return new(bool) }))
	}
	for name, check := range checked {
		give(name, check)
	}
	return t
})

var optionNames = sync.OnceValue(func() []string {
	var names []string
	for name := range table() {
		names = append(names, name)
	}
	for name := range aliases {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
})

// canonical returns fio's first name of an option.
func canonical(key string) string {
	if to, ok := aliases[key]; ok {
		return to
	}
	return key
}

func lookup(key string) (spec, bool) {
	s, ok := table()[canonical(key)]
	return s, ok
}

// ClassOf returns how an option is treated by its name alone, and why; some values of native options are delegated.
func ClassOf(key string) (Class, string) {
	if s, ok := lookup(key); ok {
		return s.class, s.why
	}
	return Unknown, ""
}

func setName(j *Job, a *arg) {
	// name= in [global] has no effect, also in fio.
	if j.Section != "" && a.text != "" {
		a.blank()
		j.Name = a.text
	}
}

func setZoneMode(j *Job, a *arg) {
	if v, ok := a.choice(a.text, []string{"none", "strided", "zbd"}, nil); ok {
		j.ZoneMode = v
		if v == "zbd" {
			a.delegate("only fio knows zoned block devices")
		}
	}
}
