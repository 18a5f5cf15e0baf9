package syntax

// Group lists options that share a class and a reason.
type Group struct {
	Class     Class
	Why       string
	Report    bool
	Note      bool
	Elsewhere Class // in workloads; "": the same class
	Names     string
}

// Groups are all options without a typed value. The reasons are clauses: "option x is refused: it runs a program".
var Groups = [][]Group{ignored, delegated, delegatedEngines, newer, refused}

var ignored = []Group{
	{Class: Ignored, Why: "logs are written as they come and not held in memory", Report: true, Names: `
		log_entries log_compression log_compression_cpus`},
	{Class: Ignored, Note: true, Why: "logs are plain text, which any program can compress", Report: true, Names: "log_store_compressed"},
	{Class: Ignored, Why: "intervals and latency histograms are always recorded", Report: true, Names: "stats"},
	{Class: Ignored, Why: "least, largest and deviation of bandwidth and IOPS are always of half seconds, which all jobs share", Report: true, Names: "bwavgtime iopsavgtime"},
	{Class: Ignored, Why: "the report chooses its own percentiles, units and sums", Report: true, Names: `
		significant_figures kb_base unit_base block_error_percentiles`},
	{Class: Ignored, Why: "latency is always measured", Names: `
		gtod_reduce disable_lat disable_clat disable_slat disable_bw_measurement clocksource gtod_cpu`},
	{Class: Ignored, Why: "the native engine has its own threads and memory", Names: `
		thread mem iomem_align lockmem hugepage-size io_submit_mode thp`},
	{Class: Ignored, Why: "the native engine chooses how it submits", Names: `
		hipri hipri_percentage fixedbufs registerfiles sqthread_poll sqthread_poll_cpu nonvectored userspace_reap`},
	// Not passed to fio either: if a disk is a file, unlink would delete it.
	{Class: Ignored, Report: true, Why: "it applies to files that fio creates; workloads use devices", Names: `
		create_serialize allow_mounted_write lockfile`},
	{Class: Ignored, Report: true, Why: "no host gets a prefix: names that differ between hosts are written with ${BRAGG_HOST}", Names: "unique_filename"},
	{Class: Ignored, Note: true, Why: "fio marks writes as barriers, and none of its I/O engines looks at the mark; fsync and fdatasync flush", Names: "write_barrier"},
	{Class: Ignored, Why: "what is read is checked by the thread that reaps it", Names: "verify_async verify_async_cpus"},
	{Class: Ignored, Why: "verification always regenerates the operations from their seed and needs no saved state", Names: "experimental_verify"},
	{Class: Ignored, Elsewhere: Refused, Why: "logs are always read bit by bit", Names: "read_iolog_chunked"},
	{Class: Ignored, Why: "it has no effect in fio either", Names: "softrandommap verifysort verifysort_nr"},
	{Class: Ignored, Note: true, Report: true, Why: "it belongs to a profile of fio that is not in use", Names: `
		threads block dir load numruns test-duration device-names prep threads-per-queue read-req-num-512-blocks
		large-block-op-kbytes`},
}

// whyZoned: docs/decisions/0009-zoned-devices-by-fio.md has the full reasons.
const WhyZoned = "writes of a zoned device go to write pointers, which other jobs move; native operations follow from seed and number alone"

var delegated = []Group{
	{Class: Delegate, Why: WhyZoned, Names: `
		zonecapacity read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits zone_reset_threshold
		zone_reset_frequency`},
	{Class: Delegate, Why: "only fio has it, and only in some versions", Names: "verify_mode"},
	{Class: Delegate, Elsewhere: Refused, Why: "only fio replays traces of blktrace", Names: `
		merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters`},
	{Class: Delegate, Why: "only fio has it, and only in versions after 3.33", Names: "sprandom"},
}

// delegatedEngines are options that only some of fio's I/O engines have.
var delegatedEngines = []Group{
	{Class: Delegate, Why: "it is an option of fio's engines net, netsplice and rdma", Names: `
		hostname port protocol nodelay listen pingpong interface ttl window_size mss bindname verb`},
	{Class: Delegate, Why: "it is an option of fio's engines rados and rbd", Names: `
		clustername cluster_name rbdname pool clientname conf busy_poll touch_objects`},
	{Class: Delegate, Why: "it is an option of fio's engine http", Names: `
		https http_host http_mode http_object_mode http_pass http_s3_key http_s3_keyid http_s3_region http_user http_verbose`},
	{Class: Delegate, Why: "it is an option of fio's engines for Gluster, HDFS and NFS", Names: `
		volume brick namenode single-instance nfs_url`},
	{Class: Delegate, Why: "it is an option of fio's engine nbd", Names: "uri"},
	{Class: Delegate, Why: "it is an option of fio's engine sg", Names: "readfua writefua sg_write_mode stream_id"},
	{Class: Delegate, Why: "it is an option of fio's engine mtd", Names: "skip_bad"},
	{Class: Delegate, Why: "it is an option of fio's engines for NVMe commands", Names: `
		cmd_type fdp fdp_pli dataplacement plids num_range pi_act pi_chk write_mode`},
	{Class: Delegate, Why: "it is an option of fio's engines that work on files as such", Names: "stat_type donorname inplace"},
}

var refused = []Group{
	{Class: Refused, Why: "it runs a program", Names: "exec_prerun exec_postrun program arguments grace_time std_redirect"},
	{Class: Refused, Why: "it sets the scheduler of a disk for all its users and never restores it; set it before the run", Names: "ioscheduler"},
	{Class: Refused, Why: "it changes settings of the machine", Names: "cgroup cgroup_weight cgroup_nodelete uid gid"},
	{Class: Refused, Why: "it replaces the whole job by a built-in test of fio", Names: "profile"},
}

// Aliases maps other spellings to the canonical one.
var Aliases = map[string]string{
	"readwrite": "rw", "blocksize": "bs", "blockalign": "ba", "blocksize_range": "bsrange",
	"blocksize_unaligned": "bs_unaligned", "iodepth_batch_submit": "iodepth_batch",
	"iodepth_batch_complete": "iodepth_batch_complete_min", "io_limit": "io_size", "fill_fs": "fill_device",
	"fileoffset": "offset", "nr_files": "nrfiles", "timeout": "runtime", "iomem": "mem", "mem_align": "iomem_align",
	"ratemin": "rate_min", "ratecycle": "rate_cycle", "wait_for_previous": "stonewall",
	"disable_bw": "disable_bw_measurement", "ss": "steadystate", "ss_dur": "steadystate_duration",
	"ss_ramp": "steadystate_ramp_time", "proto": "protocol",
	"ss_interval": "steadystate_check_interval", "fdp_pli_select": "plid_select", "chunck_size": "chunk_size",
}

// Canonical returns fio's first name of an option.
func Canonical(key string) string {
	if to, ok := Aliases[key]; ok {
		return to
	}
	return key
}
