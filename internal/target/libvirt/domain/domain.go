// Package domain is libvirt's domains as VMs of a run: their XML, the record that each carries in its metadata, and the operations
// on one host. It makes no decisions over several hosts and touches no volumes.
//
//	Domain ──▶ Client.Define ──▶ … ──▶ Client.All ──▶ Info: owner, record, disks, power
package domain

import (
	_ "embed"
	"strings"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// Accelerators by their name in libvirt: the type of a domain.
const (
	KVM = "kvm"
	TCG = "qemu"
)

// DisksMax limits the disks of a VM, including the system disk.
const DisksMax = 200

// Domain is a domain to create.
type Domain struct {
	Type     string // KVM or TCG
	Name     string
	UUID     string // empty: a probe
	Metadata *Metadata
	RAMBytes int64
	VCPUs    int
	Topology target.Topology
	// Kernel boots without a boot loader, with Initrd and Cmdline.
	Kernel, Initrd, Cmdline string
	CPUMode                 string // under KVM
	ResetMillis             int64  // after which firmware without a system resets
	Disks                   []Disk
	Guest                   *Guest // nil: it has no system
}

// Guest has the devices of a domain with a system, except its disks.
type Guest struct {
	MAC             string
	Network, Bridge string // one of the two
}

// Disk is a disk on the virtio-scsi controller. The i-th is sda, sdb, …: Linux numbers logical units in their order.
// The serial number contains the index too, for guests that detect disks in another order.
type Disk struct {
	Index         int
	Path          string
	Format, Cache string
	CDROM         bool
	ReadOnly      bool
	Boot          bool
}

func (d Disk) Name() string   { return target.DiskName(d.Index) }
func (d Disk) Serial() string { return SerialOf(d.Index) }

// Direct reports whether the host does not cache the disk, which native I/O needs.
func (d Disk) Direct() bool { return d.Cache == "none" || d.Cache == "directsync" }

//go:embed domain.xml.tmpl
var domainXML string

var domainTemplate = virsh.NewTemplate(domainXML)

// Text is the domain as XML.
func (d Domain) Text() []byte { return domainTemplate.Text(d) }

// DiskIndex is the inverse of target.DiskName.
func DiskIndex(name string) int {
	index := 0
	for _, r := range strings.TrimPrefix(name, "sd") {
		index = index*26 + int(r-'a') + 1
	}
	return index - 1
}

// SerialOf is the serial number of the i-th disk.
func SerialOf(i int) string { return "bragg-" + target.DiskName(i) }
