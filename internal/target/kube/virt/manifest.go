package virt

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

const (
	runManual   = "Manual"
	systemDisk  = "sda"
	seedDisk    = "seed"
	networkName = "default"
	ioNative    = "native"
	// What a VM requests where the target file does not reserve its limits.
	cpuLeast    = "10m"
	memoryLeast = "32Mi"
	// Where a container image has the files of bragg image build.
	kernelPath = "/boot/" + image.KernelFile
	initrdPath = "/boot/" + image.InitramfsFile
	// architecture of nodes: the kernel's command line depends on it.
	architecture = "amd64"
)

// blueprints describe VMs.
type blueprints struct {
	site     Site
	settings Settings
	objects  object.Settings
}

// describe is the VirtualMachine of a record. Without a grace period every end of an instance is a cut of its power.
func (b *blueprints) describe(rec object.Record, tag object.Owner) *machine {
	m := &machine{ObjectMeta: rec.Meta(rec.VM.ID, tag)}
	m.Spec.RunStrategy = runManual
	m.Spec.Template.Metadata = templateMeta{Labels: maps.Clone(m.Labels), Annotations: maps.Clone(m.Annotations)}
	none := int64(0)
	m.Spec.Template.Spec = instanceSpec{
		Hostname: object.Hostname(rec.VM.Name), Domain: b.domain(rec), Volumes: b.volumes(rec),
		Networks:     []network{{Name: networkName, Pod: &emptySpec{}}},
		NodeSelector: maps.Clone(b.objects.Selector), Affinity: b.affinity(rec.VM.NodeID), Tolerations: b.objects.Tolerations,
		Eviction: b.settings.Eviction, GraceSeconds: &none,
	}
	return m
}

func (b *blueprints) domain(rec object.Record) domain {
	no := false
	t := rec.Topology
	if !t.Set() {
		t = target.Topology{Sockets: 1, Cores: max(1, rec.VCPUs), Threads: 1}
	}
	d := domain{
		CPU:    cpu{Sockets: t.Sockets, Cores: t.Cores, Threads: max(1, t.Threads), Model: b.settings.CPUModel},
		Memory: memory{Guest: resource.NewQuantity(rec.RAMBytes, resource.BinarySI).String()},
		Devices: devices{
			Disks: b.disks(rec), Interfaces: []nic{{Name: networkName}}, Random: &emptySpec{}, Graphics: &no,
		},
		Resources: &resources{Requests: map[string]string{"cpu": cpuLeast, "memory": memoryLeast}},
	}
	if b.objects.Reserve { // KubeVirt requests the guest's memory, and its own beside
		d.Resources.Requests = map[string]string{"cpu": strconv.Itoa(rec.VCPUs)}
	}
	if b.settings.Binding == bindingBridge {
		d.Devices.Interfaces[0].Bridge = &emptySpec{}
	} else {
		d.Devices.Interfaces[0].Masquerade = &emptySpec{}
	}
	if b.settings.Machine != "" {
		d.Machine = &machineType{b.settings.Machine}
	}
	if boot := b.site.Boot(rec.Template); boot.Kernel {
		d.Firmware = &firmware{&kernelBoot{
			Arguments: image.CommandLine(architecture),
			Container: kernelContainer{boot.Image, b.objects.PullSecret, string(b.objects.PullPolicy), kernelPath, initrdPath},
		}}
	}
	return d
}

// disks lists the system disk, data disks and the seed. A guest without a system disk has the seed in its place: the first data disk is
// sdb then, too. Elsewhere the seed is on another bus, and takes no letter.
func (b *blueprints) disks(rec object.Record) []disk {
	var list []disk
	first := int64(1)
	seed := disk{Name: seedDisk, Disk: diskTarget{Bus: busVirtio, ReadOnly: true}}
	kernel := b.site.Boot(rec.Template).Kernel
	if kernel {
		seed.Disk.Bus = b.settings.Bus
		list = append(list, seed)
	} else {
		list = append(list, disk{Name: systemDisk, BootOrder: &first, Disk: diskTarget{Bus: b.settings.Bus}})
	}
	for i := range rec.VM.Disks {
		name := target.DiskName(i + 1)
		one := disk{Name: name, Serial: serialOf(name), Cache: b.settings.Cache, Disk: diskTarget{Bus: b.settings.Bus}}
		if b.settings.Cache == cacheNone {
			one.IO = ioNative
		}
		list = append(list, one)
	}
	if !kernel {
		list = append(list, seed)
	}
	return list
}

// volumes are what the disks are made of. KubeVirt makes a disk of the seed's Secret, with the label that guests look for.
func (b *blueprints) volumes(rec object.Record) []volume {
	var list []volume
	switch boot := b.site.Boot(rec.Template); {
	case rec.System != nil:
		list = append(list, volume{Name: systemDisk, Claim: &claimSource{rec.SystemName()}})
	case !boot.Kernel:
		list = append(list, volume{Name: systemDisk, Container: &containerDisk{boot.Image, b.objects.PullSecret, string(b.objects.PullPolicy)}})
	}
	for i := range rec.VM.Disks {
		list = append(list, volume{Name: target.DiskName(i + 1), Claim: &claimSource{rec.DiskName(i)}})
	}
	return append(list, volume{Name: seedDisk, Secret: &secretSource{rec.VM.ID, image.SeedLabel}})
}

// preferredMost is the highest weight of a preference.
const preferredMost = 100

// affinity binds a VM to its node. One that may migrate only prefers it: the pod to which an instance moves has the affinity of the
// instance, which KubeVirt does not let anyone change. Start verifies the node.
func (b *blueprints) affinity(nodeID string) *corev1.Affinity {
	term := corev1.NodeSelectorTerm{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{nodeID}}},
	}
	if b.settings.Migratable() {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: preferredMost, Preference: term}},
		}}
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
	}}
}
