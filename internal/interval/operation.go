package interval

// Operation is a kind of change to VMs or to a node.
type Operation string

const (
	OperationDeploy     Operation = "deploy" // created from a template
	OperationClone      Operation = "clone"
	OperationPowerOn    Operation = "power-on"
	OperationBoot       Operation = "boot" // from power on until the agent answers
	OperationSnapshot   Operation = "snapshot"
	OperationMigrate    Operation = "migrate"
	OperationVMRecovery Operation = "vm-recovery" // from the loss of its node until the agent answers

	OperationNodeOff      Operation = "node-off" // until the node has no power
	OperationNodeShutdown Operation = "node-shutdown"
	OperationNodeOn       Operation = "node-on"       // until the node has power
	OperationHostUp       Operation = "host-up"       // from the power-on command until the node's system answers
	OperationClusterReady Operation = "cluster-ready" // from the power-on command until the cluster reports ready
)

// Operations lists all operations, in the order of reports.
var Operations = []Operation{
	OperationDeploy, OperationClone, OperationPowerOn, OperationBoot, OperationSnapshot, OperationMigrate,
	OperationNodeOff, OperationNodeShutdown, OperationNodeOn, OperationHostUp, OperationClusterReady, OperationVMRecovery,
}
