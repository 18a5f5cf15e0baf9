package fiojob

// group lists options that share a class and a reason.
type group struct {
	class     Class
	why       string
	report    bool
	note      bool
	elsewhere Class // in workloads; "": the same
	names     string
}

// groups are all options without a typed meaning here. The reasons are clauses: "option x is refused: it runs a program".
var groups = [][]group{ignored, delegated, delegatedEngines, newer, refused}

var ignored = []group{
	{class: Ignored, why: "logs are written as they come and not held in memory", report: true, names: `
		log_entries log_compression log_compression_cpus`},
	{class: Ignored, note: true, why: "logs are plain text, which any program can compress", report: true, names: "log_store_compressed"},
	{class: Ignored, why: "intervals and latency histograms are always recorded", report: true, names: "stats"},
	{class: Ignored, why: "least, largest and deviation of bandwidth and IOPS are always of half seconds, which all jobs share", report: true, names: "bwavgtime iopsavgtime"},
	{class: Ignored, why: "the report chooses its own percentiles, units and sums", report: true, names: `
		significant_figures kb_base unit_base block_error_percentiles`},
	{class: Ignored, why: "latency is always measured", names: `
		gtod_reduce disable_lat disable_clat disable_slat disable_bw_measurement clocksource gtod_cpu`},
	{class: Ignored, why: "the native engine has its own threads and memory", names: `
		thread mem iomem_align lockmem hugepage-size io_submit_mode thp`},
	{class: Ignored, why: "the native engine chooses how it submits", names: `
		hipri hipri_percentage fixedbufs registerfiles sqthread_poll sqthread_poll_cpu nonvectored userspace_reap`},
	// Never given to fio either: on a disk that is a file, unlink would delete it.
	{class: Ignored, report: true, why: "it concerns files that fio creates, and workloads use devices", names: `
		create_serialize allow_file_create allow_mounted_write lockfile`},
	{class: Ignored, report: true, why: "no host gets a prefix: names that differ between hosts are written with ${BRAGG_HOST}", names: "unique_filename"},
	{class: Ignored, note: true, why: "fio marks writes as barriers, and none of its I/O engines looks at the mark; fsync and fdatasync flush", names: "write_barrier"},
	{class: Ignored, why: "what is read is checked by the thread that reaps it", names: "verify_async verify_async_cpus"},
	{class: Ignored, why: "verification always makes the operations again from their seed, so that no state of it need be saved", names: "experimental_verify"},
	{class: Ignored, elsewhere: Refused, why: "logs are always read bit by bit", names: "read_iolog_chunked"},
	{class: Ignored, why: "fio itself does nothing with it", names: "softrandommap verifysort verifysort_nr"},
	{class: Ignored, note: true, report: true, why: "it belongs to a profile of fio that is not in use", names: `
		threads block dir load numruns test-duration device-names prep threads-per-queue read-req-num-512-blocks
		large-block-op-kbytes`},
}

// whyZoned: docs/decisions/0009-zoned-devices-by-fio.md has it whole.
const whyZoned = "writes of a zoned device go to write pointers, which other jobs move; native operations follow from seed and number alone"

var delegated = []group{
	{class: Delegate, why: whyZoned, names: `
		zonecapacity read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits zone_reset_threshold
		zone_reset_frequency`},
	{class: Delegate, why: "only fio has it, and only in some versions", names: "verify_mode"},
	{class: Delegate, elsewhere: Refused, why: "only fio replays traces of blktrace", names: `
		merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters`},
	{class: Delegate, why: "only fio has it, and only in versions after 3.33", names: "sprandom"},
}

// delegatedEngines are options that exist with some of fio's I/O engines only.
var delegatedEngines = []group{
	{class: Delegate, why: "it is an option of fio's engines net, netsplice and rdma", names: `
		hostname port protocol nodelay listen pingpong interface ttl window_size mss bindname verb`},
	{class: Delegate, why: "it is an option of fio's engines rados and rbd", names: `
		clustername cluster_name rbdname pool clientname conf busy_poll touch_objects`},
	{class: Delegate, why: "it is an option of fio's engine http", names: `
		https http_host http_mode http_object_mode http_pass http_s3_key http_s3_keyid http_s3_region http_user http_verbose`},
	{class: Delegate, why: "it is an option of fio's engines for Gluster, HDFS and NFS", names: `
		volume brick namenode single-instance nfs_url`},
	{class: Delegate, why: "it is an option of fio's engine nbd", names: "uri"},
	{class: Delegate, why: "it is an option of fio's engine sg", names: "readfua writefua sg_write_mode stream_id"},
	{class: Delegate, why: "it is an option of fio's engine mtd", names: "skip_bad"},
	{class: Delegate, why: "it is an option of fio's engines for NVMe commands", names: `
		cmd_type fdp fdp_pli dataplacement plids num_range pi_act pi_chk write_mode`},
	{class: Delegate, why: "it is an option of fio's engines that work on files as such", names: "stat_type donorname inplace"},
}

var refused = []group{
	{class: Refused, why: "it runs a program", names: "exec_prerun exec_postrun program arguments grace_time std_redirect"},
	{class: Refused, why: "it sets the scheduler of a disk for all its users and never restores it; set it before the run", names: "ioscheduler"},
	{class: Refused, why: "it changes settings of the machine", names: "cgroup cgroup_weight cgroup_nodelete uid gid"},
	{class: Refused, why: "it replaces the whole job by a built-in test of fio", names: "profile"},
}
