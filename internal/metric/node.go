package metric

// NodeValue is the name of cluster metrics: one sample per node and reading, with the labels node (its id) and metric (X-Ray's
// name, "CpuUsage.Avg.Megahertz"), and simulated="true" if the target only simulates it. X-Ray's names have dots and a unit
// inside, so they are a label and not the name.
const NodeValue = "bragg_node_value"
