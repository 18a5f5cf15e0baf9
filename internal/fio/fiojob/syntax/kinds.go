package syntax

import (
	"strings"
	"sync"
)

// Kind is the type of an option's value in fio. It defines how the exact reading reads the value.
type Kind string

const (
	KindText   Kind = "text"
	KindChoice Kind = "one of fixed words"
	KindSwitch Kind = "0 or 1"
	KindFlag   Kind = "nothing, 0 or 1"
	KindCount  Kind = "number"
	KindBytes  Kind = "bytes"
	KindSize   Kind = "bytes or percentage"
	KindTime   Kind = "time"
	kindRange  Kind = "range of bytes"
	kindSplit  Kind = "sizes with shares"
	kindList   Kind = "numbers with : between them"
)

// kindNames lists the options of every kind except text, as in fio 3.33.
var kindNames = map[Kind]string{
	KindChoice: `
		clocksource cmd_type continue_on_error cpumode cpus_allowed_policy dedupe_mode exit_what fadvise_hint fallocate
		file_service_type io_submit_mode ioengine kb_base lockfile mem protocol random_distribution random_generator
		rate_process replay_skip rw rw_sequencer sg_write_mode stat_type steadystate sync thinktime_blocks_type
		unified_rw_reporting unit_base verb verify write_hint zonemode`,
	KindSwitch: `
		allow_file_create allow_mounted_write allrandrepeat atomic bs_is_seq_rand deac end_syncfs hdfs_use_direct
		libblkio_force_enable_completion_eventfd libblkio_vectored libblkio_write_zeroes_on_trim random_sequence_stride
		recover_zbd_write_error single_instance write_zone_remainder block_error_percentiles buffered busy_poll
		cgroup_nodelete clat_percentiles create_fsync create_on_open create_only create_serialize dedupe_global direct
		disable_bw_measurement disable_clat disable_lat disable_slat disk_util do_verify end_fsync error_dump
		exit_on_io_done experimental_verify file_append fill_device fsync_on_close gtod_reduce ignore_zone_limits
		invalidate lat_percentiles latency_run log_alternate_epoch log_issue_time log_max_value log_offset log_prio
		log_store_compressed log_unix_epoch nodelay nowait overwrite per_job_logs pre_read randrepeat
		rate_ignore_thinktime read_beyond_wp read_iolog_chunked readfua replay_no_stall scramble_buffers
		serialize_overlap single-instance skip_bad slat_percentiles stats std_redirect touch_objects
		trim_verify_zero unique_filename unlink unlink_each_loop verify_dump verify_fatal verify_header_seed verify_state_load
		verify_state_save verify_write_sequence writefua`,
	KindFlag: `
		bs_unaligned exitall exitall_on_error fixedbufs group_reporting hipri listen new_group norandommap pingpong prep
		refill_buffers registerfiles sqthread_poll stonewall thread time_based userspace_reap verify_only zero_buffers`,
	KindCount: `
		apptag apptag_mask cmdprio_hint gpu_dev_id job_start_clock_id libblkio_num_entries libblkio_queue_size md_per_io_size
		priohint spr_num_regions thinkcycles xnvme_dev_nsid
		bwavgtime cgroup_weight cmdprio cmdprio_class cmdprio_percentage cpuchunks cpuload cpumask dedupe_percentage
		dedupe_working_set_percentage fdatasync flow flow_id flow_sleep force_async fsync gid grace_time gtod_cpu
		hipri_percentage inplace iodepth iodepth_batch iodepth_batch_complete_max iodepth_batch_complete_min iodepth_low
		iopsavgtime job_max_open_zones log_alternate_epoch_clock_id log_avg_msec log_entries log_hist_coarseness
		log_hist_msec loops max_open_zones mss nice nonvectored nrfiles number_ios numjobs openfiles percentage_random
		port prio prioclass randseed rate_cycle rate_iops rate_iops_min replay_scale replay_time_scale rwmixread
		rwmixwrite significant_figures sqthread_poll_cpu stream_id thinktime_blocks thp trim_backlog_batch
		trim_percentage ttl uid uncached verify_async verify_backlog_batch write_barrier
		buffer_compress_percentage trim_backlog verify_backlog threads load numruns
		test-duration threads-per-queue read-req-num-512-blocks large-block-op-kbytes`,
	KindBytes: `
		ba bs buffer_compress_chunk verify_pattern_interval filesize hugepage-size lockmem log_compression offset_align rate rate_min
		block ramp_size replay_align verify_interval verify_offset window_size zonecapacity zonerange zonesize`,
	KindSize: "io_size offset offset_increment size zoneskip",
	KindTime: `
		latency_target latency_window max_latency ramp_time runtime startdelay steadystate_duration
		steadystate_ramp_time thinktime thinktime_iotime thinktime_spin`,
	kindRange: "bsrange",
	kindSplit: "bssplit",
	kindList: `
		latency_percentile merge_blktrace_iters merge_blktrace_scalars percentile_list zone_reset_frequency
		zone_reset_threshold`,
}

var kinds = sync.OnceValue(func() map[string]Kind {
	out := map[string]Kind{}
	for k, names := range kindNames {
		for name := range strings.FieldsSeq(names) {
			out[name] = k
		}
	}
	return out
})

func KindOf(name string) Kind {
	if k, ok := kinds()[name]; ok {
		return k
	}
	return KindText
}
