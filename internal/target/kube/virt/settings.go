package virt

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/target"
)

// Settings are what a target file says of VMs of KubeVirt.
type Settings struct {
	Bus       string // of disks
	Cache     string
	Binding   string // of the network card to the pod network
	CPUModel  string // "": KubeVirt's default
	Machine   string // machine type; "": KubeVirt's default
	Eviction  string
	Access    corev1.PersistentVolumeAccessMode // of disks
	User, Key string                            // login in guests of cloud images
}

const (
	busSCSI   = "scsi"
	busVirtio = "virtio"

	bindingMasquerade = "masquerade"
	bindingBridge     = "bridge"

	cacheNone = "none"

	evictionAuto    = "auto"
	evictionNone    = "None"
	evictionMigrate = "LiveMigrate"
)

// Choices are the options of the target file that only this kind of VMs has, and their values, the default first.
var Choices = map[string][]string{
	"access_mode":       {string(corev1.ReadWriteOnce), string(corev1.ReadWriteMany)},
	"disk_bus":          {busSCSI, busVirtio},
	"disk_cache":        {cacheNone, "writethrough", "writeback"},
	"eviction_strategy": {evictionAuto, evictionNone, evictionMigrate, "LiveMigrateIfPossible"},
	"network_binding":   {bindingMasquerade, bindingBridge},
}

// Texts are the options that are free text.
var Texts = []string{"cpu_model", "guest_key", "guest_user", "machine_type"}

// Read reads options whose values are among Choices, and returns everything that does not fit together.
func Read(value map[string]string) (Settings, []error) {
	s := Settings{
		Bus: value["disk_bus"], Cache: value["disk_cache"], Binding: value["network_binding"], CPUModel: value["cpu_model"], Machine: value["machine_type"],
		Eviction: value["eviction_strategy"], Access: corev1.PersistentVolumeAccessMode(value["access_mode"]), User: value["guest_user"], Key: value["guest_key"],
	}
	var faults []error
	if s.Eviction == evictionAuto {
		if s.Eviction = evictionNone; s.Migratable() {
			s.Eviction = evictionMigrate
		}
	}
	if s.Eviction == evictionMigrate && !s.Migratable() {
		faults = append(faults, fmt.Errorf("option eviction_strategy %s needs VMs that can migrate: access_mode ReadWriteMany and network_binding masquerade", s.Eviction))
	}
	if s.Key != "" && s.User == "" {
		faults = append(faults, fmt.Errorf("option guest_key needs a guest_user"))
	}
	return s, faults
}

// Migratable reports whether VMs can be moved while they run: their disks can be attached to two nodes at the same time, and their
// address is not that of a pod.
func (s Settings) Migratable() bool {
	return s.Access == corev1.ReadWriteMany && s.Binding == bindingMasquerade
}

// Boot is what a template of the target file boots.
type Boot struct {
	Image  string // container image: with a disk at /disk, or with Kernel
	Kernel bool   // the image has a kernel that bragg image build wrote, and no disk
	Claim  string // a claim of the namespace that is copied for each VM
}

// Begins of templates.
const (
	bootClaim  = "pvc:"
	bootKernel = "kernel:"
	bootDocker = "docker://"
)

// ReadBoot reads "IMAGE", "kernel:IMAGE" or "pvc:NAME". The zero value: there is nothing to boot.
func ReadBoot(text string) Boot {
	if claim, ok := strings.CutPrefix(text, bootClaim); ok {
		return Boot{Claim: claim}
	}
	image, kernel := strings.CutPrefix(text, bootKernel)
	return Boot{Image: strings.TrimPrefix(image, bootDocker), Kernel: kernel && image != ""}
}

// Is reports whether there is something to boot.
func (b Boot) Is() bool { return b != Boot{} }

// Where udev puts disks by their serial number.
const (
	bySCSI   = "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_"
	byVirtio = "/dev/disk/by-id/virtio-"
)

// serialOf is the serial number of a disk. Virtio shows the first 20 characters.
func serialOf(name string) string { return "bragg-" + name }

// Disks returns the disks of a VM as jobs see them. Distributions name disks in the order in which their drivers find them, so there a
// disk is found by its serial number. Guests of bragg image build have no udev, and keep the order.
func (s Settings) Disks(sizes []int64, b Boot) []target.Disk {
	list := make([]target.Disk, len(sizes))
	for i, size := range sizes {
		name := target.DiskName(i + 1)
		list[i] = target.Disk{Device: "/dev/" + name, SizeBytes: size}
		switch {
		case b.Kernel:
		case s.Bus == busVirtio:
			list[i].Path = byVirtio + serialOf(name)
		default:
			list[i].Path = bySCSI + serialOf(name)
		}
	}
	return list
}
