// Package target describes what is tested: nodes, VMs, groups, and what a provider can do with them.
//
// A provider (local, libvirt, …) implements Target and as many capability interfaces as it can do; everything beyond the
// basic Target is detected by type assertion through Capabilities, so that a plan is refused before anything is touched.
// Nodes, VMs and groups are plain values without methods that act.
//
//	target file ──▶ Provider.Open ──▶ Target ──▶ Inventory, Create, Delete, … ──▶ VM values
//
// Contract of all methods, checked by targettest: they block until done or the context ends; they may be called from
// several goroutines at once; they are idempotent where the name allows it (deleting what is gone and powering on what
// runs succeed); nothing is ever acted on without the ownership Tag of the caller.
package target

import (
	"context"
	"net"
	"time"
)

// Node is a physical host of the target, or a simulated one.
type Node struct {
	ID       string `json:"id"` // stable identity: host uuid, or "node-1"
	Name     string `json:"name"`
	Address  string `json:"address,omitempty"`
	CPUs     int    `json:"cpus,omitempty"`      // 0: not known
	RAMBytes int64  `json:"ram_bytes,omitempty"` // 0: not known
	HasBMC   bool   `json:"has_bmc"`
	// AddressesMax is how many VMs can get an address here, 0: not known.
	AddressesMax int `json:"addresses_max,omitempty"`
	// CVM is the address of the node's storage controller VM, on Nutanix clusters.
	CVM string `json:"cvm,omitempty"`
}

// PowerState of a VM or node.
type PowerState string

const (
	PowerOn      PowerState = "on"
	PowerOff     PowerState = "off"
	PowerUnknown PowerState = "unknown"
)

// Disk is a data disk of a VM. Device is the name inside the VM that job files use: the first is "/dev/sdb". Path is
// where the agent of that VM opens it; it is empty where both are the same.
type Disk struct {
	Device    string `json:"device"`
	Path      string `json:"path,omitempty"`
	SizeBytes int64  `json:"size_bytes"`
}

// DiskName returns the name of disk i as Linux gives it: sda, …, sdz, sdaa. Disk 0 is the system's, data begins at 1.
func DiskName(i int) string {
	letters := ""
	for n := i + 1; n > 0; n = (n - 1) / 26 {
		letters = string(rune('a'+(n-1)%26)) + letters
	}
	return "sd" + letters
}

// VM is a virtual machine, or a process in place of one, that this run created.
type VM struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"` // unique in the run: "<group>-0001"
	Group     string     `json:"group"`
	Ordinal   int        `json:"ordinal"` // 0, 1, … within the group
	NodeID    string     `json:"node_id"`
	Addresses []string   `json:"addresses,omitempty"`
	Disks     []Disk     `json:"disks"`
	Power     PowerState `json:"power"`
}

// VMSpec says what to create.
type VMSpec struct {
	Name      string  `json:"name"`
	Group     string  `json:"group"`
	Ordinal   int     `json:"ordinal"`
	NodeID    string  `json:"node_id"`
	Template  string  `json:"template"`
	VCPUs     int     `json:"vcpus"`
	RAMBytes  int64   `json:"ram_bytes"`
	DiskBytes []int64 `json:"disk_bytes"`
	// ExporterPorts are TCP ports on the VM where Prometheus exporters answer.
	ExporterPorts []int `json:"exporter_ports,omitempty"`
}

// Tag proves that an object belongs to one run of one controller. It is written on every object at its creation.
type Tag struct {
	Controller string `json:"controller"` // identity of the runs directory
	Run        string `json:"run"`        // run id
	Nonce      string `json:"nonce"`      // 128 random bits in hex, kept in the journal only
}

// Fact is one free statement about the target, copied into the report.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Inventory is what the target has.
type Inventory struct {
	Provider  string   `json:"provider"`
	Name      string   `json:"name"`
	Simulated bool     `json:"simulated"` // nothing here is real: the fake target
	Nodes     []Node   `json:"nodes"`     // in the fixed order that node slices count
	Templates []string `json:"templates,omitempty"`
	// AnyTemplate: every template name is accepted because the target does not boot images.
	AnyTemplate bool  `json:"any_template,omitempty"`
	FreeBytes   int64 `json:"free_bytes"`  // of the storage that holds VM disks; 0: not known
	TotalBytes  int64 `json:"total_bytes"` // 0: not known
	// Replication is how often the storage keeps each byte, 0 counts as 1: what VMs write takes that much of FreeBytes.
	Replication int `json:"replication_factor,omitempty"`
	// AddressesMax is how many VMs can get an address on all nodes together, 0: not known.
	AddressesMax int    `json:"addresses_max,omitempty"`
	Facts        []Fact `json:"facts,omitempty"`
	// Simulates names the capabilities that this target only simulates, with one sentence each on what is missing.
	Simulates map[Capability]string `json:"imitated,omitempty"`
	// PowerAllowed: the owner allows node power operations on this target.
	PowerAllowed bool `json:"power_allowed"`
	// Systems: each VM has an operating system of its own, with an identity and addresses that no other VM has.
	Systems bool `json:"systems,omitempty"`
	// RestartsElsewhere: VMs of a node that fails start again on another one, where SetHA lets them. RestartsWithNode: they may
	// start again with their own node.
	RestartsElsewhere bool `json:"restarts_elsewhere,omitempty"`
	RestartsWithNode  bool `json:"restarts_with_node,omitempty"`
	// Hypervisor is the hypervisor's name as playbooks receive it: "ahv" and "esx" as in X-Ray, "kvm" is ours; "" for any
	// other.
	Hypervisor string `json:"hypervisor,omitempty"`
	// Boots says how long VMs boot, by template. VMs of others answer at once.
	Boots map[string]Boot `json:"boots,omitempty"`
	// Overcommits: the CPUs and RAM of VMs are limits here, not reservations, so that their sum need not fit a node.
	Overcommits bool `json:"overcommits,omitempty"`
}

// Boot is what a plan reckons with from the moment a VM is powered on until its agent answers.
type Boot struct {
	Alone time.Duration `json:"alone_ns"`         // of a VM that has its node to itself
	CPU   time.Duration `json:"cpu_ns,omitempty"` // processor time of the node, which VMs that boot together share; 0: of no account
	Basis string        `json:"basis"`            // what the figures rest on, for a reader: "emulated, as measured"
}

// Target is an open connection to one target. Close releases the connection and nothing else.
type Target interface {
	Inventory(ctx context.Context) (Inventory, error)
	// Create makes powered-off VMs from templates, with empty data disks; either all or an error. On error, what was
	// made can be found again with Owned.
	Create(ctx context.Context, tag Tag, specs []VMSpec) ([]VM, error)
	// Delete powers off and removes VMs with all their disks and snapshots.
	Delete(ctx context.Context, tag Tag, vms []VM) error
	// Owned lists all VMs that carry the tag, in the order of their names, with their present power state.
	Owned(ctx context.Context, tag Tag) ([]VM, error)
	Close() error
}

// AgentDialer connects to the agent of a powered-on VM. The local provider hands out its socket pair; others dial. A new
// connection is needed after each power cycle. Where the provider sees that the VM has stopped, the error is a StoppedError:
// no agent can answer.
type AgentDialer interface {
	// A connection over a network, which may break while the agent goes on, has the ConnectionState of a *tls.Conn.
	DialAgent(ctx context.Context, vm VM) (net.Conn, error)
}

// VMPower switches VMs. PowerOffVMs cuts the power without a shutdown.
type VMPower interface {
	PowerOnVMs(ctx context.Context, tag Tag, vms []VM) error
	PowerOffVMs(ctx context.Context, tag Tag, vms []VM) error
}

// Cloner copies a VM in its current state, data included. The clones are powered off.
type Cloner interface {
	CloneVM(ctx context.Context, tag Tag, source VM, specs []VMSpec, linked bool) ([]VM, error)
}

// Snapshotter takes and removes snapshots; they end with their VM.
type Snapshotter interface {
	SnapshotVMs(ctx context.Context, tag Tag, vms []VM, name string) error
}

// Migrator moves running VMs to a node.
type Migrator interface {
	MigrateVMs(ctx context.Context, tag Tag, vms []VM, nodeID string) error
}

// DatastoreRelocator moves the disks of VMs to another datastore.
type DatastoreRelocator interface {
	RelocateVMs(ctx context.Context, tag Tag, vms []VM, datastore string) error
}

// Placer sets where VMs may run: automatic balancing (DRS) and restart after a node failure (HA).
type Placer interface {
	SetHA(ctx context.Context, tag Tag, vms []VM, enabled bool) error
	SetBalancing(ctx context.Context, tag Tag, vms []VM, enabled bool) error
}

// NodePower controls nodes through their BMC. PowerOffNode cuts the power; ShutdownNode asks the host to stop.
type NodePower interface {
	NodePowerState(ctx context.Context, nodeID string) (PowerState, error)
	PowerOnNode(ctx context.Context, nodeID string) error
	PowerOffNode(ctx context.Context, nodeID string) error
	ShutdownNode(ctx context.Context, nodeID string) error
}

// NodeLimiter is a NodePower that refuses to have more nodes off at once than a limit. The engine sets the limit from the
// plan before the first step.
type NodeLimiter interface {
	LimitNodesOff(count int)
}

// PowerCutForeseer lists objections to cutting a node's power now. It changes nothing.
type PowerCutForeseer interface {
	Foresee(ctx context.Context, nodeID string) (PowerCutForesight, error)
}

// PowerCutForesight is what a cut of one node would take with it.
type PowerCutForesight struct {
	Foreign []string // VMs and agents of others that run there
	SameAs  []string // other nodes, by name, that are the same machine
}

// ReadyChecker reports whether the cluster services are up: nil, or why not.
type ReadyChecker interface {
	Ready(ctx context.Context) error
}

// NodeSample is one reading of a node's use, as cluster metrics show it.
type NodeSample struct {
	NodeID string `json:"node_id"`
	// Metric has X-Ray's name. Every NodeMeter reads CpuUsage.Avg.Percent, CpuUsage.Avg.Megahertz, MemUsage.Avg.Percent,
	// NetReceived.Avg.KilobytesPerSecond and NetTransmitted.Avg.KilobytesPerSecond; a kilobyte is 1024 bytes here.
	Metric     string    `json:"metric"`
	At         time.Time `json:"at"`
	Value      float64   `json:"value"`
	Simulated  bool      `json:"simulated,omitempty"`
	UnitSymbol string    `json:"unit,omitempty"`
}

// NodeMeter reads cluster metrics, one sample per node and metric.
type NodeMeter interface {
	SampleNodes(ctx context.Context) ([]NodeSample, error)
}

// GuestShell runs commands inside VMs. Offered by no target unless the user allowed it.
type GuestShell interface {
	RunInVM(ctx context.Context, vm VM, user, command string) (output string, err error)
}
