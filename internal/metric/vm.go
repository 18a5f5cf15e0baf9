package metric

// HypervisorVM begins the names of what the hypervisor counts of a VM: one sample per VM and reading, with the labels vm, instance,
// vm_group and node, and simulated="true" where the target only simulates it. The rest of the name is target.VMMetric.
// Names say whose count it is because guests tell of the same things, under node_exporter's names, and believe otherwise.
const HypervisorVM = "bragg_hypervisor_vm_"
