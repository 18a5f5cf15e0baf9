package syntax

// newer lists options that distribution packages of fio 3.33 lack: options of later versions (up to 3.42) and of engines
// that need additional libraries. A file with such an option is not refused as misspelt, but left to a fio that supports
// it.
var newer = []Group{
	{Class: Delegate, Why: "it is an option of fio's engines for commands of NVMe and SCSI, after 3.33", Names: `
		apptag apptag_mask cdb_len deac md_per_io_size read_mode verify_bytchk data_placement dp_scheme plid_select`},
	{Class: Delegate, Why: "it is an option of fio's engine xnvme", Names: `
		xnvme_admin xnvme_async xnvme_be xnvme_dev_nsid xnvme_dev_subnqn xnvme_iovec xnvme_mem xnvme_sync`},
	{Class: Delegate, Why: "it is an option of fio's engine libblkio", Names: `
		libblkio_driver libblkio_path libblkio_pre_connect_props libblkio_num_entries libblkio_queue_size
		libblkio_pre_start_props libblkio_vectored libblkio_write_zeroes_on_trim libblkio_wait_mode
		libblkio_force_enable_completion_eventfd`},
	{Class: Delegate, Why: "it is an option of fio's engines for graphics processors", Names: "cuda_io rocm_io gpu_dev_id gpu_dev_ids"},
	{Class: Delegate, Why: "it is an option of fio's engines dfs and libhdfs", Names: `
		cont chunk_size object_class svcl hdfsdirectory hdfs_use_direct single_instance`},
	{Class: Delegate, Why: "it is an option of fio's engines http and rbd, after 3.33", Names: `
		http_s3_security_token http_s3_sse_customer_algorithm http_s3_sse_customer_key http_s3_storage_class
		http_swift_auth_token rbd_encryption_format rbd_encryption_passphrase`},
	{Class: Delegate, Why: "it is an option of fio's engine libiscsi", Names: "initiator"},
	{Class: Delegate, Why: "it is an option of fio's engine windowsaio", Names: "no_completion_thread"},
	{Class: Delegate, Why: WhyZoned, Names: "recover_zbd_write_error write_zone_remainder"},
	{Class: Delegate, Why: "it counts turns of a loop of fio's, which last as long as fio was compiled to; thinktime_spin is a time", Names: "thinkcycles"},
	{Class: Delegate, Why: "only fio has it, and only in versions after 3.33", Names: `
		cmdprio_hint filetype priohint random_sequence_stride spr_cs spr_num_regions spr_op verify_policy`},
	{Class: Ignored, Why: "reports have times of the wall clock", Report: true, Names: "job_start_clock_id"},
	{Class: Ignored, Why: "the native engine has threads and no processes to name", Names: "comm"},
	{Class: Ignored, Why: "it has no effect in fio either", Names: "flow_watermark percentage_sequential rwmixcycle"},
}
