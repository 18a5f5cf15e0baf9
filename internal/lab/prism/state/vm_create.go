package state

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"
)

// VMSpec describes a VM to make.
type VMSpec struct {
	Name, Description                       string
	Sockets, CoresPerSocket, ThreadsPerCore int
	MemoryBytes                             int64
	ClusterID, HostID                       string // HostID: where it starts if it can; "": anywhere
	Affinity, Categories                    []string
	Disks                                   []DiskSpec
	NICs                                    []NICSpec
	UserData, MetaData                      []byte
	DataSource                              string
	HAPriority                              int
	PowerOn                                 bool
}

// DiskSpec describes a disk: of an image, a copy of another disk, or empty.
type DiskSpec struct {
	Bus         string
	Index       int // below 0: the next that is free
	CDROM       bool
	SizeBytes   int64
	ContainerID string
	ImageID     string
	DiskID      string
}

// NICSpec describes an interface.
type NICSpec struct{ SubnetID, MAC, Address string }

// Bounds of a VM.
const (
	nameBytesMax   = 256 // of images
	vmNameMax      = 80
	disksMax       = 256
	memoryBytesMin = 16 << 20
	vmsMax         = 20000
	userDataMax    = 64 << 10 // bytes; Prism refuses longer scripts
)

// CreateVM makes a VM that is off.
func (p *vms) CreateVM(s VMSpec) (task, vmID string, err error) {
	vm := &VM{ID: NewID(), HAPriority: s.HAPriority}
	err = p.change(func(d *Data) error {
		if err := d.checkSpec(s); err != nil {
			return err
		}
		if len(d.VMs) >= vmsMax {
			return refuse(Busy, "the cluster has %d VMs, which is its limit", vmsMax)
		}
		vm.describe(s)
		for _, n := range s.NICs {
			nic, err := d.newNIC(n)
			if err != nil {
				return err
			}
			vm.NICs = append(vm.NICs, nic)
		}
		vm.BIOS, vm.Generation = NewID(), NewID()
		return nil
	})
	if err != nil {
		return "", "", err
	}
	task, err = p.begin(job{
		operation: "VmCreate", description: "Create VM", entities: []Entity{{vm.ID, RelVM, vm.Name}},
		do: func() error {
			if err := p.materialize(vm, s.Disks); err != nil {
				return err
			}
			if s.PowerOn {
				return p.powerOn(vm.ID, s.HostID)
			}
			return nil
		},
	})
	return task, vm.ID, err
}

func (vm *VM) describe(s VMSpec) {
	vm.Name, vm.Description, vm.MemoryBytes, vm.Power = s.Name, s.Description, s.MemoryBytes, Off
	vm.Sockets, vm.CoresPerSocket, vm.ThreadsPerCore = max(1, s.Sockets), max(1, s.CoresPerSocket), max(1, s.ThreadsPerCore)
	vm.Wanted, vm.Affinity, vm.Categories = s.HostID, slices.Clone(s.Affinity), slices.Clone(s.Categories)
	vm.UserData, vm.MetaData, vm.DataSource = s.UserData, s.MetaData, s.DataSource
}

// materialize makes the disks of a new VM and adds it to the cluster.
func (p *vms) materialize(vm *VM, specs []DiskSpec) error {
	for _, s := range specs {
		if err := p.addDisk(vm, s); err != nil {
			p.discard(vm.Disks)
			return err
		}
	}
	return p.change(func(d *Data) error {
		vm.Created = p.Now()
		vm.Updated = vm.Created
		d.VMs = append(d.VMs, vm)
		return nil
	})
}

// addDisk makes the contents of one more disk of a VM that only the caller knows.
func (p *vms) addDisk(vm *VM, s DiskSpec) error {
	disk, from := Disk{ID: NewID(), Bus: bus(s), Index: s.Index, CDROM: s.CDROM, SizeBytes: s.SizeBytes, ContainerID: s.ContainerID, ImageID: s.ImageID}, ""
	var size int64
	p.Read(func(d *Data) {
		if s.ContainerID == "" {
			disk.ContainerID = d.Containers[0].ID
		}
		if i := d.Image(s.ImageID); i != nil {
			from, size = i.ID, i.SizeBytes
		}
		for _, other := range d.VMs {
			if i := slices.IndexFunc(other.Disks, func(o Disk) bool { return o.ID == s.DiskID }); i >= 0 {
				from, size = s.DiskID, other.Disks[i].SizeBytes
			}
		}
	})
	if s.Index < 0 {
		disk.Index = vm.freeIndex(disk.Bus)
	}
	disk.SizeBytes = max(disk.SizeBytes, size)
	if disk.CDROM && from == "" {
		vm.Disks = append(vm.Disks, disk)
		return nil
	}
	var err error
	if from == "" {
		err = p.options.Disks.Create(disk.ID, disk.SizeBytes)
	} else {
		err = p.options.Disks.Copy(from, disk.ID, disk.SizeBytes)
	}
	if err != nil {
		return fmt.Errorf("make disk %s:%d: %w", disk.Bus, disk.Index, err)
	}
	vm.Disks = append(vm.Disks, disk)
	return nil
}

func bus(s DiskSpec) string {
	switch {
	case s.Bus != "":
		return s.Bus
	case s.CDROM:
		return "IDE"
	}
	return "SCSI"
}

func (vm *VM) freeIndex(bus string) int {
	for i := 0; ; i++ {
		if !slices.ContainsFunc(vm.Disks, func(d Disk) bool { return d.Bus == bus && d.Index == i }) {
			return i
		}
	}
}

func (p *base) discard(disks []Disk) {
	for _, d := range disks {
		_ = p.options.Disks.Remove(d.ID)
	}
}

// checkSpec refuses what Prism refuses before a task begins.
func (d *Data) checkSpec(s VMSpec) error {
	switch {
	case s.Name == "" || utf8.RuneCountInString(s.Name) > vmNameMax:
		return Invalidf("name: want 1 to %d characters", vmNameMax)
	case s.MemoryBytes < memoryBytesMin:
		return Invalidf("memorySizeBytes: %d is below %d", s.MemoryBytes, int64(memoryBytesMin))
	case s.ClusterID == "":
		return Invalidf("cluster: the reference is required")
	case s.ClusterID != d.Cluster.ID:
		return refuse(NotFound, "cluster %s was not found, or is not an AOS cluster", s.ClusterID)
	case s.HostID != "" && d.Host(s.HostID) == nil:
		return Missing("host", s.HostID)
	case len(s.UserData) > userDataMax:
		return Invalidf("guestCustomization: the script has %d bytes, the limit is %d", len(s.UserData), userDataMax)
	case len(s.Disks) > disksMax:
		return Invalidf("disks: %d, the limit is %d", len(s.Disks), disksMax)
	}
	for _, h := range s.Affinity {
		if d.Host(h) == nil {
			return Missing("host", h)
		}
	}
	if err := d.checkCategories(s.Categories); err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, disk := range s.Disks {
		if err := d.checkDisk(disk); err != nil {
			return err
		}
		place := fmt.Sprint(bus(disk), ":", disk.Index)
		if disk.Index >= 0 && taken[place] {
			return Invalidf("disks: the address %s is used twice", place)
		}
		taken[place] = true
	}
	return nil
}

func (d *Data) checkCategories(ids []string) error {
	for _, id := range ids {
		if d.Category(id) == nil {
			return Missing("category", id)
		}
	}
	return nil
}

func (d *Data) checkDisk(s DiskSpec) error {
	if s.ContainerID != "" && d.Container(s.ContainerID) == nil {
		return Missing("storage container", s.ContainerID)
	}
	switch {
	case s.ImageID != "":
		i := d.Image(s.ImageID)
		if i == nil {
			return Missing("image", s.ImageID)
		}
		if !i.Active {
			return refuse(Busy, "image %s is not ready", i.Name)
		}
		if s.SizeBytes > 0 && s.SizeBytes < i.SizeBytes {
			return Invalidf("diskSizeBytes: %d is below the size %d of image %s", s.SizeBytes, i.SizeBytes, i.Name)
		}
		return nil
	case s.DiskID != "":
		for _, vm := range d.VMs {
			if slices.ContainsFunc(vm.Disks, func(o Disk) bool { return o.ID == s.DiskID }) {
				return nil
			}
		}
		return Missing("disk", s.DiskID)
	case s.CDROM:
		return nil
	case s.SizeBytes <= 0:
		return Invalidf("disks: a disk needs an image, another disk or a size")
	case s.SizeBytes > d.Cluster.CapacityBytes-d.UsedBytes():
		return Invalidf("diskSizeBytes: %d exceed the free space of the storage", s.SizeBytes)
	}
	return nil
}

// newNIC assigns an address of the subnet to an interface.
func (d *Data) newNIC(s NICSpec) (NIC, error) {
	if s.SubnetID == "" {
		s.SubnetID = d.Subnets[0].ID
	}
	subnet := d.Subnet(s.SubnetID)
	if subnet == nil {
		return NIC{}, Missing("subnet", s.SubnetID)
	}
	nic := NIC{ID: NewID(), MAC: s.MAC, SubnetID: s.SubnetID, Address: s.Address, Connected: true}
	d.nics++
	if nic.MAC == "" {
		nic.MAC = fmt.Sprintf("50:6b:8d:%02x:%02x:%02x", byte(d.nics>>16), byte(d.nics>>8), byte(d.nics))
	}
	if nic.Address != "" {
		at, err := netip.ParseAddr(nic.Address)
		if err != nil || !subnet.Prefix.Contains(at) {
			return NIC{}, Invalidf("ipAddress: %q is not in the subnet %s", s.Address, subnet.Prefix)
		}
		if d.addressTaken(nic.Address) {
			return NIC{}, refuse(Busy, "address %s is in use", nic.Address)
		}
		return nic, nil
	}
	var ok bool
	if nic.Address, ok = d.freeAddress(subnet.Prefix); !ok {
		return NIC{}, refuse(Busy, "subnet %s has no free address", subnet.Name)
	}
	return nic, nil
}

// freeAddress is the next address after the one that was assigned last, so that addresses of deleted VMs are not used again soon.
func (d *Data) freeAddress(subnet netip.Prefix) (string, bool) {
	const first = 50 // after hosts and CVMs
	last := 1<<(subnet.Addr().BitLen()-subnet.Bits()) - 2
	for range last {
		if d.lastHost++; d.lastHost < first || d.lastHost > last {
			d.lastHost = first
		}
		if a := offset(subnet, d.lastHost).String(); !d.addressTaken(a) {
			return a, true
		}
	}
	return "", false
}

func (d *Data) addressTaken(address string) bool {
	return slices.ContainsFunc(d.VMs, func(vm *VM) bool {
		return slices.ContainsFunc(vm.NICs, func(n NIC) bool { return n.Address == address })
	})
}

// DeleteVM removes a VM with its disks; one that runs is killed, as Prism does. match is the version that the caller saw; below 0: any.
func (p *vms) DeleteVM(id string, match int) (string, error) {
	name, err := p.checkVM(id, match)
	if err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "VmDelete", description: "Delete VM", entities: []Entity{{id, RelVM, name}},
		do: func() error {
			defer p.only(id)()
			p.options.Machines.Stop(id, false)
			var disks []Disk
			err := p.change(func(d *Data) error {
				vm := d.VM(id)
				if vm == nil {
					return Missing("VM", id)
				}
				disks = vm.Disks
				d.VMs = slices.DeleteFunc(d.VMs, func(o *VM) bool { return o == vm })
				delete(p.busy, id)
				return nil
			})
			p.discard(disks)
			return err
		},
	})
}

// checkVM returns the name of a VM whose version is match.
func (p *base) checkVM(id string, match int) (name string, err error) {
	err = p.change(func(d *Data) error {
		vm := d.VM(id)
		if vm == nil {
			return Missing("VM", id)
		}
		name = vm.Name
		return checkVersion(vm.Version, match)
	})
	return name, err
}

func checkVersion(version, match int) error {
	if match >= 0 && match != version {
		return &Refusal{Stale, "the entity was changed meanwhile: its ETag does not match"}
	}
	return nil
}

// IsRefusal returns the refusal in an error.
func IsRefusal(err error) (*Refusal, bool) {
	var r *Refusal
	return r, errors.As(err, &r)
}

// named reports whether two names are the same to Prism.
func named(a, b string) bool { return strings.EqualFold(a, b) }
