// Package object describes the objects of a VM in a cluster: its record, the Secret of its agent, its pod, and the marks on all of them.
// It makes no calls.
package object

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
)

// Labels and annotations of all objects.
const (
	LabelManager = "app.kubernetes.io/managed-by"
	Manager      = "bragg"
	LabelMark    = "bragg.dev/mark" // the begin of the mark, which is too long for a label
	LabelVM      = "bragg.dev/vm"   // id of the VM
	ownerNote    = "bragg.dev/owner"
	NameNote     = "bragg.dev/vm-name"
	runNote      = "bragg.dev/run"

	Ours      = LabelManager + "=" + Manager
	markRunes = 32
)

// Record is a VM as its ConfigMap holds it. The ConfigMap is made before all other objects of the VM and deleted after them, so
// there is always an object that names the owner of what exists.
type Record struct {
	Version  int       `json:"version"`
	VM       target.VM `json:"vm"` // powered off, on the node that it was created for
	Template string    `json:"template"`
	VCPUs    int       `json:"vcpus"`
	RAMBytes int64     `json:"ram_bytes"`
	Block    bool      `json:"block,omitempty"`
	// Topology divides the CPUs of a VM of KubeVirt; zero: one socket.
	Topology target.Topology `json:"cpu_topology,omitzero"`
	// System is the disk that a VM of KubeVirt boots from, if it is a claim; nil: it has none, or one that is made at each start.
	System        *System   `json:"system,omitempty"`
	ExporterPorts []int     `json:"exporter_ports,omitempty"`
	Mark          string    `json:"-"`
	UID           types.UID `json:"-"` // of the ConfigMap
	Deleting      bool      `json:"-"`
}

// System is a system disk that outlives power cycles: a copy of another claim.
type System struct {
	Source    string `json:"source"` // the claim
	SizeBytes int64  `json:"size_bytes"`
	Block     bool   `json:"block,omitempty"`
}

// Volume is what one claim of a VM is made of.
type Volume struct {
	Claim     string
	Device    string // in the VM
	SizeBytes int64  // of the claim
	Block     bool
	Source    string // the claim whose copy it is, unless it is made from another source; "": it is empty
}

// Volumes are those of the disks, in their order, and of the system disk at last.
func (r Record) Volumes() []Volume {
	list := make([]Volume, len(r.VM.Disks))
	for i, d := range r.VM.Disks {
		list[i] = Volume{Claim: r.DiskName(i), Device: d.Device, SizeBytes: d.SizeBytes, Block: r.Block}
		if !r.Block {
			list[i].SizeBytes += fileSystemExtra(d.SizeBytes)
		}
	}
	if s := r.System; s != nil {
		list = append(list, Volume{Claim: r.SystemName(), Device: "/dev/" + target.DiskName(0), SizeBytes: s.SizeBytes, Block: s.Block, Source: s.Source})
	}
	return list
}

// fileSystemExtra is added to a volume with a file system, for its metadata and journal.
func fileSystemExtra(size int64) int64 { return size/16 + 64<<20 }

const (
	RecordVersion = 1
	recordKey     = "vm.json"
)

// NewID makes the name of all objects of a VM: readable, and unique.
func NewID(vm string) string {
	var random [5]byte
	_, _ = rand.Read(random[:])
	name := Hostname(vm)
	if len(name) > nameRunes {
		name = strings.Trim(name[:nameRunes], "-")
	}
	return "bragg-" + name + "-" + hex.EncodeToString(random[:])
}

// nameRunes leaves place for the prefix, the random part and a suffix in 63 characters.
const nameRunes = 36

// Hostname turns any VM name into one that Kubernetes accepts.
func Hostname(vm string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(vm) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
		if b.Len() == hostnameMax {
			break
		}
	}
	if name := strings.Trim(b.String(), "-"); name != "" {
		return name
	}
	return "vm"
}

const hostnameMax = 63

// Meta is the metadata of an object of a VM.
func (r Record) Meta(name string, tag Owner) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{LabelManager: Manager, LabelMark: tag.Mark[:markRunes], LabelVM: r.VM.ID},
		Annotations: map[string]string{ownerNote: tag.Mark, runNote: api.Words(tag.Run), NameNote: api.Words(r.VM.Name)},
	}
	if r.UID != "" {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: r.VM.ID, UID: r.UID}}
	}
	return m
}

// Owner is whose an object is.
type Owner struct{ Mark, Run string }

// OwnerOf is the owner whose tag it is.
func OwnerOf(tag target.Tag) Owner { return Owner{tag.Mark(), tag.Run} }

// ConfigMap holds the record.
func (r Record) ConfigMap(tag Owner) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{ObjectMeta: r.Meta(r.VM.ID, tag), Data: map[string]string{recordKey: string(text)}}, nil
}

// ReadRecord reads a ConfigMap; false: it is not a record of a VM.
func ReadRecord(m *corev1.ConfigMap) (Record, bool) {
	var r Record
	text, ok := m.Data[recordKey]
	if !ok || m.Labels[LabelManager] != Manager || json.Unmarshal([]byte(text), &r) != nil || r.Version != RecordVersion || r.VM.ID != m.Name {
		return Record{}, false
	}
	r.Mark, r.UID, r.Deleting = m.Annotations[ownerNote], m.UID, m.DeletionTimestamp != nil
	return r, true
}

// MarkOf returns the mark of an object of this program, "" for objects of others.
func MarkOf(o metav1.Object) string {
	if o.GetLabels()[LabelManager] != Manager {
		return ""
	}
	return o.GetAnnotations()[ownerNote]
}

// DiskName is the name of the claim of a disk: "bragg-oltp-0001-0123456789-sdb".
func (r Record) DiskName(i int) string { return r.VM.ID + "-" + target.DiskName(i+1) }

// SystemName is the name of the claim of the system disk.
func (r Record) SystemName() string { return r.VM.ID + "-" + target.DiskName(0) }

// Disks returns the disks of a VM as jobs see them. In a pod, a block device has the name that jobs use; a file system holds one
// file of the disk's size.
func Disks(sizes []int64, block bool) []target.Disk {
	list := make([]target.Disk, len(sizes))
	for i, size := range sizes {
		name := target.DiskName(i + 1)
		list[i] = target.Disk{Device: "/dev/" + name, SizeBytes: size}
		if !block {
			list[i].Path = diskFile(name)
		}
	}
	return list
}

const disksDir = "/disks"

func diskDir(name string) string  { return disksDir + "/" + name }
func diskFile(name string) string { return fmt.Sprintf("%s/%s/disk", disksDir, name) }
