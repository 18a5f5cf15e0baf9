package metric

// HypervisorVM is the prefix of the metrics that the hypervisor counts for a VM: one sample per VM and reading, with the labels
// vm, instance, vm_group and node, and simulated="true" if the target only simulates it. The rest of the name is target.VMMetric.
// The names include the source, because guests report the same quantities under node_exporter's names, with other values.
const HypervisorVM = "bragg_hypervisor_vm_"
