package storage

import (
	"regexp"
	"strings"

	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// Volumes are named for their owner:
//
//	bragg-<mark of the tag>-<identity of the VM>.sdb      a data disk
//	…                                          .sdb.1    what was written after the first snapshot
//	…                                          .sda      the system disk, cloned from a template
//	…                                          .seed     what the guest reads when it boots
//	bragg-<mark of the tag>-<digest>.kernel, .initrd      of a template that this run brought
//
// libvirt knows no metadata of volumes. A second file with the tag could be lost, or appear too late; a name cannot: no
// volume of Bragg exists for a moment without its tag. A name that matches in whole and has exactly the caller's mark is the
// caller's. Anything else, however similar, is foreign.
var volumeText = regexp.MustCompile(`^bragg-([0-9a-f]{64})-([0-9a-f]{32})\.(seed|kernel|initrd|sd[a-z]{1,3}(?:\.[0-9]{1,4})?)$`)

// VolumeName names a volume of a run.
func VolumeName(mark, id, role string) string {
	return "bragg-" + mark + "-" + strings.ReplaceAll(id, "-", "") + "." + role
}

// Owner is what the name of a volume says.
type Owner struct {
	Mark string
	ID   string // UUID of the VM; of a kernel or initrd, its digest written like one
	Role string // "sdb", "sdb.1", "seed", "kernel"
}

// ParseVolumeName returns the owner of a volume, unless it is foreign.
func ParseVolumeName(name string) (Owner, bool) {
	m := volumeText.FindStringSubmatch(name)
	if m == nil {
		return Owner{}, false
	}
	h := m[2]
	return Owner{
		Mark: m[1], ID: strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-"), Role: m[3],
	}, true
}

// Template reports whether the volume belongs to a template rather than to one VM.
func (o Owner) Template() bool { return o.Role == "kernel" || o.Role == "initrd" }

// Formats of volumes.
const (
	Raw   = "raw"
	QCOW2 = "qcow2"
)

// Volume is a volume to create. It uses no space until it is written.
type Volume struct {
	Name      string
	Format    string
	SizeBytes int64
	// Base is the path of the volume that a qcow2 overlay reads; empty: it is not an overlay.
	Base       string
	BaseFormat string
}

// volumeXML is as https://libvirt.org/formatstorage.html has it.
var volumeXML = virsh.NewTemplate(`<volume><name>{{x .Name}}</name><capacity unit="bytes">{{.SizeBytes}}</capacity>` +
	`<allocation unit="bytes">0</allocation><target><format type="{{x .Format}}"/><permissions><mode>0600</mode></permissions></target>` +
	`{{if .Base}}<backingStore><path>{{x .Base}}</path><format type="{{x .BaseFormat}}"/></backingStore>{{end}}</volume>`)

// Stored is a volume as it is in a pool.
type Stored struct {
	Name     string `xml:"name"`
	Capacity int64  `xml:"capacity"`
	Path     string `xml:"target>path"`
	Format   struct {
		Type string `xml:"type,attr"`
	} `xml:"target>format"`
}
