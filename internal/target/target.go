// Package target describes the system under test: nodes, VMs, groups, and the operations of a provider on them.
//
// A provider (local, libvirt, …) implements Target and the capability interfaces that it supports; everything beyond the
// basic Target is detected by type assertion through Capabilities, so that a plan is refused before anything is changed.
// Nodes, VMs and groups are plain values without methods that act.
//
//	target file ──▶ Provider.Open ──▶ Target ──▶ Inventory, Create, Delete, … ──▶ VM values
//
// Contract of all methods, checked by targettest: they block until done or the context ends; they may be called from
// several goroutines at the same time; they are idempotent where the name allows it (deleting what does not exist and
// powering on what runs succeed); they act only on objects that carry the caller's ownership Tag.
package target

import (
	"context"
	"fmt"
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

// Disk is a data disk of a VM. Device is the name inside the VM that job files use: the first is "/dev/sdb". Path is where
// the VM's agent opens it; empty if it is the same as Device.
type Disk struct {
	Device    string `json:"device"`
	Path      string `json:"path,omitempty"`
	SizeBytes int64  `json:"size_bytes"`
}

// DiskName returns the Linux name of disk i: sda, …, sdz, sdaa. Disk 0 is the system disk, data disks begin at 1.
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

// VMSpec is the specification of a VM to create.
type VMSpec struct {
	Name     string `json:"name"`
	Group    string `json:"group"`
	Ordinal  int    `json:"ordinal"`
	NodeID   string `json:"node_id"`
	Template string `json:"template"`
	VCPUs    int    `json:"vcpus"`
	// Topology divides the VCPUs; zero: as the target does.
	Topology  Topology `json:"cpu_topology,omitzero"`
	RAMBytes  int64    `json:"ram_bytes"`
	DiskBytes []int64  `json:"disk_bytes"`
	// ExporterPorts are TCP ports of Prometheus exporters on the VM.
	ExporterPorts []int `json:"exporter_ports,omitempty"`
}

// Topology divides the CPUs of a VM: sockets with cores with threads.
type Topology struct {
	Sockets int `json:"sockets"`
	Cores   int `json:"cores"`   // per socket
	Threads int `json:"threads"` // per core
}

// Set reports whether it divides anything.
func (t Topology) Set() bool { return t != Topology{} }

// String is "2 sockets × 4 cores × 2 threads", without threads if they are the cores.
func (t Topology) String() string {
	text := fmt.Sprintf("%d sockets × %d cores", t.Sockets, t.Cores)
	if t.Threads > 1 {
		text += fmt.Sprintf(" × %d threads", t.Threads)
	}
	return text
}

// Tag proves that an object belongs to one run of one controller. It is written on every object at creation.
type Tag struct {
	Controller string `json:"controller"` // identity of the runs directory
	Run        string `json:"run"`        // run id
	Nonce      string `json:"nonce"`      // 128 random bits in hex, kept in the journal only
}

// Fact is a free-form statement about the target, copied into the report.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Inventory describes a target's nodes, storage and properties.
type Inventory struct {
	Provider  string   `json:"provider"`
	Name      string   `json:"name"`
	Simulated bool     `json:"simulated"` // nothing here is real: the fake target
	Nodes     []Node   `json:"nodes"`     // in the fixed order of node slices
	Templates []string `json:"templates,omitempty"`
	// AnyTemplate: every template name is accepted because the target does not boot images.
	AnyTemplate bool  `json:"any_template,omitempty"`
	FreeBytes   int64 `json:"free_bytes"`  // of the storage for VM disks; 0: not known
	TotalBytes  int64 `json:"total_bytes"` // 0: not known
	// Replication is the number of copies of each byte in the storage, 0 counts as 1: writes of VMs take that many times
	// their size of FreeBytes.
	Replication int `json:"replication_factor,omitempty"`
	// AddressesMax is how many VMs can get an address on all nodes together, 0: not known.
	AddressesMax int    `json:"addresses_max,omitempty"`
	Facts        []Fact `json:"facts,omitempty"`
	// Simulates names the capabilities that this target only simulates, with one sentence each on what is missing.
	Simulates map[Capability]string `json:"imitated,omitempty"`
	// PowerAllowed: the owner allows node power operations on this target.
	PowerAllowed bool `json:"power_allowed"`
	// MaintenanceAllowed: the owner allows runs to put nodes into maintenance.
	MaintenanceAllowed bool `json:"maintenance_allowed,omitempty"`
	// ContainerSettingsAllowed: the owner allows runs to change settings of the storage container.
	ContainerSettingsAllowed bool `json:"container_settings_allowed,omitempty"`
	// Systems: each VM has its own operating system, with a unique identity and unique addresses.
	Systems bool `json:"systems,omitempty"`
	// RestartsElsewhere: VMs of a failed node restart on another one, if SetHA allows it. RestartsWithNode: they may
	// restart with their own node.
	RestartsElsewhere bool `json:"restarts_elsewhere,omitempty"`
	RestartsWithNode  bool `json:"restarts_with_node,omitempty"`
	// Hypervisor is the hypervisor's name as playbooks receive it: "ahv" and "esx" as in X-Ray, "kvm" in Bragg only; "" for
	// any other.
	Hypervisor string `json:"hypervisor,omitempty"`
	// Boots is the boot time of VMs, by template. VMs of other templates answer at once.
	Boots map[string]Boot `json:"boots,omitempty"`
	// Logins to VMs by ssh; nil: not offered.
	Logins *Logins `json:"logins,omitempty"`
	// Overcommits: the CPUs and RAM of VMs are limits here, not reservations, so that their sum may exceed a node.
	Overcommits bool `json:"overcommits,omitempty"`
	// Topologies: VMs can have a Topology of their own.
	Topologies bool `json:"cpu_topologies,omitempty"`
}

// Boot is the planned time from powering a VM on until its agent answers.
type Boot struct {
	Alone time.Duration `json:"alone_ns"`         // of a VM that is alone on its node
	CPU   time.Duration `json:"cpu_ns,omitempty"` // processor time of the node, shared by VMs that boot together; 0: negligible
	Basis string        `json:"basis"`            // where the figures are from, for readers: "emulated, as measured"
	// AgentOnly: the system of the template has no programs but the agent.
	AgentOnly bool `json:"agent_only,omitempty"`
}

// Target is an open connection to one target. Close releases the connection and nothing else.
type Target interface {
	Inventory(ctx context.Context) (Inventory, error)
	// Create makes powered-off VMs from templates, with empty data disks; either all or an error. After an error, Owned
	// still finds the VMs that were made.
	Create(ctx context.Context, tag Tag, specs []VMSpec) ([]VM, error)
	// Delete powers off and removes VMs with all their disks and snapshots.
	Delete(ctx context.Context, tag Tag, vms []VM) error
	// Owned lists all VMs that carry the tag, ordered by name, with their current power state.
	Owned(ctx context.Context, tag Tag) ([]VM, error)
	Close() error
}

// AgentDialer connects to the agent of a powered-on VM. The local provider hands out its socket pair; others dial. A new
// connection is needed after each power cycle. If the provider sees that the VM has stopped, the error is a StoppedError:
// no agent can answer.
type AgentDialer interface {
	// A network connection, which may fail while the agent keeps running, has the ConnectionState of a *tls.Conn.
	DialAgent(ctx context.Context, vm VM) (net.Conn, error)
}

// Addresser finds the address at which the VMs of the target reach one of them, which is on.
type Addresser interface {
	AddressOf(ctx context.Context, vm VM) (string, error)
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

// NodePower controls nodes through their BMC. PowerOffNode cuts the power; ShutdownNode requests a shutdown of the host.
type NodePower interface {
	NodePowerState(ctx context.Context, nodeID string) (PowerState, error)
	PowerOnNode(ctx context.Context, nodeID string) error
	PowerOffNode(ctx context.Context, nodeID string) error
	ShutdownNode(ctx context.Context, nodeID string) error
}

// NodeLimiter is a NodePower that refuses to have more nodes off at the same time than a limit. The engine sets the limit
// from the plan before the first step.
type NodeLimiter interface {
	LimitNodesOff(count int)
}

// OutOfBand is a NodePower that works without the rest of the target. A run keeps the list in its journal: with it, and the
// credentials of the target file, power is restored while nothing of the target answers.
type OutOfBand interface {
	// BMCNodes lists the nodes with a BMC. Their ids are those of the inventory.
	BMCNodes() []NodeConfig
}

// PowerCutForeseer lists objections to cutting a node's power now. It changes nothing.
type PowerCutForeseer interface {
	Foresee(ctx context.Context, nodeID string) (PowerCutForesight, error)
}

// PowerCutForesight lists what else a power cut of one node would hit.
type PowerCutForesight struct {
	Foreign []string // VMs and agents of others that run there
	SameAs  []string // other nodes, by name, that are the same machine
}

// ReadyChecker returns nil if the cluster services are up, else the reason why not.
type ReadyChecker interface {
	Ready(ctx context.Context) error
}

// NodeSample is one reading of a node's use, as cluster metrics show it.
type NodeSample struct {
	NodeID string `json:"node_id"`
	// Metric has X-Ray's name: CpuUsage.Avg.Percent, CpuUsage.Avg.Megahertz, MemUsage.Avg.Percent,
	// NetReceived.Avg.KilobytesPerSecond or NetTransmitted.Avg.KilobytesPerSecond; a kilobyte is 1024 bytes here. One that
	// the target does not count is missing, never zero: a Kubernetes cluster does not know the clock rate of its CPUs.
	Metric string `json:"metric"`
	// At is the end of the time that Value averages, by the clock of this program: the platform's own clock is corrected.
	At         time.Time `json:"at"`
	Value      float64   `json:"value"`
	Simulated  bool      `json:"simulated,omitempty"`
	UnitSymbol string    `json:"unit,omitempty"`
}

// NodeMeter reads cluster metrics: at most one sample per node and metric, since the last reading. Where the platform collects
// less often than it is read, a reading may have nothing new: no sample is returned twice.
type NodeMeter interface {
	SampleNodes(ctx context.Context) ([]NodeSample, error)
}

// GuestShell runs commands inside VMs. No target offers it unless the user allowed it.
type GuestShell interface {
	RunInVM(ctx context.Context, vm VM, user, command string) (output string, err error)
}
