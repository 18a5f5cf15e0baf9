// Package hardware plans devices of VMs: data disks on SCSI controllers, network cards. It makes no calls.
package hardware

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/record"
)

// Limits of virtual hardware.
const (
	scsiBuses    = 4
	scsiUnits    = 16
	scsiReserved = 7 // the unit of the controller itself
	// disksMax leaves one unit for the system disk.
	disksMax = scsiBuses*(scsiUnits-1) - 1
)

// Temporary keys of new devices, which vCenter replaces.
const (
	keyController = -100
	keyDisk       = -200
	keyCard       = -300
)

// Provisioning of disks.
const (
	Thin  = "thin"
	Lazy  = "lazy-zeroed"
	Eager = "eager-zeroed"
)

// Devices are those of a VM or template.
type Devices struct{ object.VirtualDeviceList }

// scsi is a controller with the units that are taken.
type scsi struct {
	key, bus int32
	used     map[int32]bool
}

func (h Devices) controllers() []*scsi {
	var all []*scsi
	at := map[int32]*scsi{}
	for _, d := range h.VirtualDeviceList {
		if c, ok := d.(types.BaseVirtualSCSIController); ok {
			one := &scsi{c.GetVirtualSCSIController().Key, c.GetVirtualSCSIController().BusNumber, map[int32]bool{scsiReserved: true}}
			all, at[one.key] = append(all, one), one
		}
	}
	for _, d := range h.VirtualDeviceList {
		v := d.GetVirtualDevice()
		if c := at[v.ControllerKey]; c != nil && v.UnitNumber != nil {
			c.used[*v.UnitNumber] = true
		}
	}
	slices.SortFunc(all, func(a, b *scsi) int { return cmp.Compare(a.bus, b.bus) })
	return all
}

// AddDisks plans data disks on free units of SCSI controllers, behind all disks that are there, and new controllers where
// those are full.
func (h Devices) AddDisks(sizes []int64, provisioning string, at types.ManagedObjectReference) ([]types.BaseVirtualDeviceConfigSpec, []record.Slot, error) {
	if len(sizes) > disksMax {
		return nil, nil, fmt.Errorf("%d data disks are more than a VM can have, %d", len(sizes), disksMax)
	}
	var changes []types.BaseVirtualDeviceConfigSpec
	var slots []record.Slot
	all := h.controllers()
	for i, size := range sizes {
		if size <= 0 {
			return nil, nil, fmt.Errorf("invalid size of disk %d: %d bytes", i, size)
		}
		c, unit := free(all)
		if c == nil {
			bus, ok := freeBus(all)
			if !ok {
				return nil, nil, fmt.Errorf("no SCSI controller of the template has room for disk %d", i)
			}
			c, unit = &scsi{keyController - bus, bus, map[int32]bool{scsiReserved: true}}, 0
			all = append(all, c)
			changes = append(changes, added(&types.ParaVirtualSCSIController{VirtualSCSIController: types.VirtualSCSIController{
				SharedBus:         types.VirtualSCSISharingNoSharing,
				VirtualController: types.VirtualController{BusNumber: bus, VirtualDevice: types.VirtualDevice{Key: c.key}},
			}}, ""))
		}
		c.used[unit] = true
		slots = append(slots, record.Slot{Bus: c.bus, Unit: unit})
		changes = append(changes, added(newDisk(types.VirtualDevice{Key: int32(keyDisk - i), ControllerKey: c.key, UnitNumber: &unit}, size, provisioning, at), types.VirtualDeviceConfigSpecFileOperationCreate))
	}
	return changes, slots, nil
}

// free returns the first unit behind all that are taken, on the last controller: disks on an earlier one would come before
// those that are there.
func free(all []*scsi) (*scsi, int32) {
	if len(all) == 0 {
		return nil, 0
	}
	c, next := all[len(all)-1], int32(0)
	for unit := range c.used {
		if unit != scsiReserved {
			next = max(next, unit+1)
		}
	}
	if next == scsiReserved {
		next++
	}
	if next >= scsiUnits {
		return nil, 0
	}
	return c, next
}

func freeBus(all []*scsi) (int32, bool) {
	for bus := range int32(scsiBuses) {
		if !slices.ContainsFunc(all, func(c *scsi) bool { return c.bus >= bus }) {
			return bus, true
		}
	}
	return 0, false
}

func newDisk(v types.VirtualDevice, size int64, provisioning string, at types.ManagedObjectReference) *types.VirtualDisk {
	v.Backing = &types.VirtualDiskFlatVer2BackingInfo{
		VirtualDeviceFileBackingInfo: types.VirtualDeviceFileBackingInfo{Datastore: &at},
		DiskMode:                     string(types.VirtualDiskModePersistent),
		ThinProvisioned:              types.NewBool(provisioning == Thin),
		EagerlyScrub:                 types.NewBool(provisioning == Eager),
	}
	return &types.VirtualDisk{CapacityInBytes: size, CapacityInKB: (size + 1023) / 1024, VirtualDevice: v}
}

func added(d types.BaseVirtualDevice, file types.VirtualDeviceConfigSpecFileOperation) types.BaseVirtualDeviceConfigSpec {
	return &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd, FileOperation: file, Device: d}
}

// Edited is a change of a device.
func Edited(d types.BaseVirtualDevice) types.BaseVirtualDeviceConfigSpec {
	return &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationEdit, Device: d}
}

// Connect plans network cards on the network: those that are there, or a new one.
func (h Devices) Connect(backing types.BaseVirtualDeviceBackingInfo) []types.BaseVirtualDeviceConfigSpec {
	var changes []types.BaseVirtualDeviceConfigSpec
	for _, card := range h.cards() {
		d := copied(card) // the template's own is shared by all VMs that are made from it
		v := d.(types.BaseVirtualEthernetCard).GetVirtualEthernetCard()
		v.Backing, v.Connectable = backing, &types.VirtualDeviceConnectInfo{StartConnected: true, AllowGuestControl: true, Connected: true}
		v.MacAddress, v.AddressType = "", string(types.VirtualEthernetCardMacTypeGenerated)
		changes = append(changes, Edited(d))
	}
	if len(changes) > 0 {
		return changes
	}
	card := &types.VirtualVmxnet3{}
	card.Key, card.Backing = keyCard, backing
	card.AddressType = string(types.VirtualEthernetCardMacTypeGenerated)
	card.Connectable = &types.VirtualDeviceConnectInfo{StartConnected: true, AllowGuestControl: true, Connected: true}
	return append(changes, added(card, ""))
}

// copied is another device of the same type and with the same settings.
func copied(d types.BaseVirtualDevice) types.BaseVirtualDevice {
	fresh := reflect.New(reflect.TypeOf(d).Elem())
	fresh.Elem().Set(reflect.ValueOf(d).Elem())
	return fresh.Interface().(types.BaseVirtualDevice)
}

func (h Devices) cards() object.VirtualDeviceList {
	return h.Select(func(d types.BaseVirtualDevice) bool {
		_, ok := d.(types.BaseVirtualEthernetCard)
		return ok
	})
}

// MAC returns the address of the first network card.
func (h Devices) MAC() string {
	for _, d := range h.cards() {
		return strings.ToLower(d.(types.BaseVirtualEthernetCard).GetVirtualEthernetCard().MacAddress)
	}
	return ""
}

// Disk finds the disk in a slot.
func (h Devices) Disk(slot record.Slot) *types.VirtualDisk {
	for _, d := range h.VirtualDeviceList {
		v, ok := d.(*types.VirtualDisk)
		if !ok || v.UnitNumber == nil || *v.UnitNumber != slot.Unit {
			continue
		}
		for _, c := range h.controllers() {
			if c.key == v.ControllerKey && c.bus == slot.Bus {
				return v
			}
		}
	}
	return nil
}

// Data describes the data disks for their users. Linux gives SCSI disks letters in the order in which it finds them, which
// is not always that of their units: agents open them by the identity that disk.EnableUUID shows to the guest.
func (h Devices) Data(slots []record.Slot) ([]target.Disk, error) {
	disks := []target.Disk{}
	for i, slot := range slots {
		d := h.Disk(slot)
		if d == nil {
			return nil, fmt.Errorf("its disk %d is missing at SCSI %d:%d", i, slot.Bus, slot.Unit)
		}
		one := target.Disk{Device: "/dev/" + target.DiskName(i+1), SizeBytes: d.CapacityInBytes}
		if one.SizeBytes == 0 {
			one.SizeBytes = d.CapacityInKB * 1024
		}
		if b, ok := d.Backing.(*types.VirtualDiskFlatVer2BackingInfo); ok && b.Uuid != "" {
			one.Path = byID + strings.ToLower(strings.ReplaceAll(b.Uuid, "-", ""))
		}
		disks = append(disks, one)
	}
	return disks, nil
}

// byID is where Linux links disks by the identity that vSphere gives them.
const byID = "/dev/disk/by-id/wwn-0x"
