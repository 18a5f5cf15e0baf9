package state

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Data is everything that exists.
type Data struct {
	Cluster    Cluster
	Central    Cluster // Prism Central lists itself among the clusters
	Hosts      []*Host
	Containers []*Container
	Subnets    []*Subnet
	Images     []*Image
	Categories []*Category
	VMs        []*VM
	Points     []*RecoveryPoint
	Policies   []*Policy
	Tasks      []*Task
	Events     []*Event
	nics       int // that were made
	lastHost   int // host part of the address that was assigned last
	clock      *shownClock
}

// Cluster is a cluster, or Prism Central.
type Cluster struct {
	ID, Name, ReleaseVersion, Address, PoolID string
	CapacityBytes                             int64
	Created                                   time.Time
	Version                                   int
}

// MaintenanceState of a host, as v4 calls it.
type MaintenanceState string

// States of maintenance.
const (
	Normal   MaintenanceState = "normal"
	Entering MaintenanceState = "entering_maintenance"
	Entered  MaintenanceState = "entered_maintenance_mode"
)

// Host is one node of the cluster.
type Host struct {
	ID, Name, Serial, BlockSerial string
	Address, CVM, CVMID, BMC      string
	DiskIDs                       []string
	Cores                         int
	MemoryBytes                   int64
	Up                            bool // it has power
	Down                          bool // the cluster has noticed that it has none
	Maintenance                   MaintenanceState
	Categories                    []string
	Booted                        time.Time
	Version                       int
	moved                         []string // VMs that maintenance moved away, and that return afterwards
	lost                          int      // how often it lost its power
}

// Usable reports whether VMs can run there.
func (h *Host) Usable() bool { return h.Up && h.Maintenance == Normal }

// Container is a storage container with the settings that can be changed.
type Container struct {
	ID, Name         string
	Settings         Settings
	MaxCapacityBytes int64
	Version          int
}

// Settings of a storage container, in the words of v4.
type Settings struct {
	ReplicationFactor    int
	Compression          bool
	CompressionDelaySecs int
	ErasureCode          string // NONE, OFF, ON
	InlineErasureCode    bool
	ErasureCodeDelaySecs int
	OnDiskDedup          string // NONE, OFF, POST_PROCESS
	CacheDedup           string // NONE, OFF, ON
	ReservedBytes        int64
	AdvertisedBytes      int64
}

// Subnet is a network with addresses that the cluster assigns.
type Subnet struct {
	ID, Name string
	VLAN     int
	Prefix   netip.Prefix
	Version  int
}

// Image is the template of disks.
type Image struct {
	ID, Name, Description, Kind string // DISK_IMAGE, ISO_IMAGE
	SizeBytes                   int64
	SHA256                      string
	Active                      bool // its contents are there
	Categories                  []string
	Created, Updated            time.Time
	Version                     int
}

// Category is a key with a value, which other entities refer to by id.
type Category struct {
	ID, Key, Value, Description string
	System                      bool
	Version                     int
}

// Power of a VM, as v4 calls it.
type Power string

// States of power.
const (
	On           Power = "ON"
	Off          Power = "OFF"
	Undetermined Power = "UNDETERMINED"
)

// VM is a virtual machine.
type VM struct {
	ID                string
	Name, Description string
	Sockets           int
	CoresPerSocket    int
	ThreadsPerCore    int
	MemoryBytes       int64
	Power             Power
	HostID            string   // where it runs, or ran last
	Wanted            string   // host that the creator named
	Affinity          []string // hosts that it may run on; empty: all
	HAPriority        int      // below 0: not restarted when its host is lost
	Categories        []string
	Disks             []Disk
	NICs              []NIC
	UserData          []byte
	MetaData          []byte
	DataSource        string
	Created, Updated  time.Time
	Version           int
	BIOS, Generation  string
	PowerChanged      time.Time
	lost              bool // it ran on a host that lost its power
}

// VCPUs is the number of processors.
func (vm *VM) VCPUs() int {
	return max(1, vm.Sockets) * max(1, vm.CoresPerSocket) * max(1, vm.ThreadsPerCore)
}

// Disk is a virtual disk, or a drive for discs.
type Disk struct {
	ID          string
	Bus         string // SCSI, IDE, PCI, SATA
	Index       int
	CDROM       bool
	SizeBytes   int64
	ContainerID string
	ImageID     string // where its contents came from
}

// NIC is a network interface.
type NIC struct {
	ID, MAC, SubnetID, Address string
	Connected                  bool
}

// RecoveryPoint is the disks and the configuration of VMs at one time.
type RecoveryPoint struct {
	ID, Name, Kind   string // CRASH_CONSISTENT, APPLICATION_CONSISTENT
	Created, Expires time.Time
	VMs              []PointVM
	Version          int
}

// PointVM is one VM of a recovery point. The ids of the disks of VM are those of its contents.
type PointVM struct {
	ID, VMID string
	VM       VM
}

// Policy keeps VMs of categories on hosts of categories.
type Policy struct {
	ID, Name, Description        string
	VMCategories, HostCategories []string
	AntiAffinity                 bool // VMs of the categories apart from each other, instead
	Created, Updated             time.Time
	Version                      int
}

// Event is what the cluster reports by itself: an alert if Severity is not INFO.
type Event struct {
	ID, Kind, Title, Message string
	Severity                 string // INFO, WARNING, CRITICAL
	At                       time.Time
	Source                   Entity
	Resolved                 bool
}

// build makes the cluster of the options.
func (d *Data) build(o Options) {
	d.clock = &shownClock{}
	now := d.Now()
	d.Cluster = Cluster{
		ID: NewID(), Name: o.Name, ReleaseVersion: o.ReleaseVersion, Address: offset(o.Network, 10).String(), PoolID: NewID(),
		CapacityBytes: o.CapacityBytes, Created: now,
	}
	d.Central = Cluster{ID: NewID(), Name: "Unnamed", ReleaseVersion: "pc." + o.ReleaseVersion, Address: offset(o.Network, 9).String(), Created: now}
	for i := range o.Hosts {
		h := &Host{
			ID: NewID(), Name: fmt.Sprintf("%s-%d", o.Name, i+1), Serial: fmt.Sprintf("OM24AS%06d", i+1), BlockSerial: "24FM6F000042",
			Address: offset(o.Network, 11+i).String(), CVM: offset(o.Network, 31+i).String(), CVMID: NewID(), DiskIDs: []string{NewID(), NewID()},
			Cores: o.HostCores, MemoryBytes: o.HostMemory, Up: true, Maintenance: Normal, Booted: now,
		}
		if i < len(o.BMCs) {
			h.BMC = o.BMCs[i]
		}
		if i < len(o.CVMs) {
			h.CVM = o.CVMs[i]
		}
		d.Hosts = append(d.Hosts, h)
	}
	d.Containers = []*Container{{
		ID: NewID(), Name: "default-container", MaxCapacityBytes: o.CapacityBytes,
		Settings: Settings{ReplicationFactor: min(2, o.Hosts), ErasureCode: "OFF", OnDiskDedup: "OFF", CacheDedup: "OFF"},
	}}
	d.Subnets = []*Subnet{{ID: NewID(), Name: "vm-network", Prefix: o.Network}}
	d.lastHost = 99
}

// offset is the address with a host part.
func offset(network netip.Prefix, n int) netip.Addr {
	a := network.Masked().Addr()
	for range n {
		a = a.Next()
	}
	return a
}

// Host returns a host, nil if there is none.
func (d *Data) Host(id string) *Host { return find(d.Hosts, id, func(h *Host) string { return h.ID }) }

// Container returns a storage container, nil if there is none.
func (d *Data) Container(id string) *Container {
	return find(d.Containers, id, func(c *Container) string { return c.ID })
}

// Subnet returns a subnet, nil if there is none.
func (d *Data) Subnet(id string) *Subnet {
	return find(d.Subnets, id, func(s *Subnet) string { return s.ID })
}

// Image returns an image, nil if there is none.
func (d *Data) Image(id string) *Image {
	return find(d.Images, id, func(i *Image) string { return i.ID })
}

// Category returns a category, nil if there is none.
func (d *Data) Category(id string) *Category {
	return find(d.Categories, id, func(c *Category) string { return c.ID })
}

// VM returns a VM, nil if there is none.
func (d *Data) VM(id string) *VM { return find(d.VMs, id, func(vm *VM) string { return vm.ID }) }

// Point returns a recovery point, nil if there is none.
func (d *Data) Point(id string) *RecoveryPoint {
	return find(d.Points, id, func(r *RecoveryPoint) string { return r.ID })
}

// PointVM returns one VM of a recovery point, nil if there is none.
func (d *Data) PointVM(id string) *PointVM {
	for _, r := range d.Points {
		if i := slices.IndexFunc(r.VMs, func(v PointVM) bool { return v.ID == id }); i >= 0 {
			return &r.VMs[i]
		}
	}
	return nil
}

// Policy returns a policy, nil if there is none.
func (d *Data) Policy(id string) *Policy {
	return find(d.Policies, id, func(p *Policy) string { return p.ID })
}

// UsedBytes is what disks, images and recovery points take, counted by their sizes.
func (d *Data) UsedBytes() (sum int64) {
	for _, vm := range d.VMs {
		for _, disk := range vm.Disks {
			sum += disk.SizeBytes
		}
	}
	for _, i := range d.Images {
		sum += i.SizeBytes
	}
	return sum
}

// On counts the VMs that run on a host.
func (d *Data) On(hostID string) (count int) {
	for _, vm := range d.VMs {
		if vm.Power == On && vm.HostID == hostID {
			count++
		}
	}
	return count
}
