package kube

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
	labelManager = "app.kubernetes.io/managed-by"
	manager      = "bragg"
	labelMark    = "bragg.dev/mark" // the begin of the mark, which is too long for a label
	labelVM      = "bragg.dev/vm"   // id of the VM
	ownerNote    = "bragg.dev/owner"
	nameNote     = "bragg.dev/vm-name"
	runNote      = "bragg.dev/run"

	ours      = labelManager + "=" + manager
	markRunes = 32
)

// record is a VM as its ConfigMap holds it. The ConfigMap is made before all other objects of the VM and deleted after them, so
// there is always an object that names the owner of what exists.
type record struct {
	Version       int       `json:"version"`
	VM            target.VM `json:"vm"` // powered off, on the node that it was created for
	Template      string    `json:"template"`
	VCPUs         int       `json:"vcpus"`
	RAMBytes      int64     `json:"ram_bytes"`
	Block         bool      `json:"block,omitempty"`
	ExporterPorts []int     `json:"exporter_ports,omitempty"`
	Mark          string    `json:"-"`
	UID           types.UID `json:"-"` // of the ConfigMap
	Deleting      bool      `json:"-"`
}

const (
	recordVersion = 1
	recordKey     = "vm.json"
)

// newID makes the name of all objects of a VM: readable, and unique.
func newID(vm string) string {
	var random [5]byte
	_, _ = rand.Read(random[:])
	name := hostname(vm)
	if len(name) > nameRunes {
		name = strings.Trim(name[:nameRunes], "-")
	}
	return "bragg-" + name + "-" + hex.EncodeToString(random[:])
}

// nameRunes leaves place for the prefix, the random part and a suffix in 63 characters.
const nameRunes = 36

// hostname turns any VM name into one that Kubernetes accepts.
func hostname(vm string) string {
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

// meta is the metadata of an object of a VM.
func (r record) meta(name string, tag owner) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{labelManager: manager, labelMark: tag.mark[:markRunes], labelVM: r.VM.ID},
		Annotations: map[string]string{ownerNote: tag.mark, runNote: api.Words(tag.run), nameNote: api.Words(r.VM.Name)},
	}
	if r.UID != "" {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: r.VM.ID, UID: r.UID}}
	}
	return m
}

// owner is whose an object is.
type owner struct{ mark, run string }

func ownerOf(tag target.Tag) owner { return owner{tag.Mark(), tag.Run} }

func (r record) configMap(tag owner) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{ObjectMeta: r.meta(r.VM.ID, tag), Data: map[string]string{recordKey: string(text)}}, nil
}

// readRecord reads a ConfigMap; false: it is not a record of a VM.
func readRecord(m *corev1.ConfigMap) (record, bool) {
	var r record
	text, ok := m.Data[recordKey]
	if !ok || m.Labels[labelManager] != manager || json.Unmarshal([]byte(text), &r) != nil || r.Version != recordVersion || r.VM.ID != m.Name {
		return record{}, false
	}
	r.Mark, r.UID, r.Deleting = m.Annotations[ownerNote], m.UID, m.DeletionTimestamp != nil
	return r, true
}

// markOf returns the mark of an object of this program, "" for objects of others.
func markOf(o metav1.Object) string {
	if o.GetLabels()[labelManager] != manager {
		return ""
	}
	return o.GetAnnotations()[ownerNote]
}

// diskName is the name of the claim of a disk: "bragg-oltp-0001-0123456789-sdb".
func (r record) diskName(i int) string { return r.VM.ID + "-" + target.DiskName(i+1) }

// disks returns the disks of a VM as jobs see them. In a pod, a block device has the name that jobs use; a file system holds one
// file of the disk's size.
func disks(sizes []int64, block bool) []target.Disk {
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
