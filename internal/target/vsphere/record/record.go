// Package record says whose a VM of vCenter is, and what it was made as. It makes no calls.
//
//	New ──▶ Record ──▶ Settings: ExtraConfig with mark and record ──▶ Annotation: the mark for people ──▶ Name: mark and id
//	a VM as vCenter shows it ──▶ Read: owner and record; a stray where only the name is ours; nothing where it is a copy
//
// The owner is written in three places, because none of them is always there: a clone that was interrupted before its
// settings were made has the name alone, and people rename VMs and edit annotations. A copy that a user made of a VM of Bragg
// carries all its settings; its instance UUID shows that, because every VM gets a new one from vCenter.
package record

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
)

// Keys of ExtraConfig.
const (
	keyMark   = "bragg.mark"
	keyRecord = "bragg.record"
	keyRun    = "bragg.run"
)

const (
	recordBytesMax = 1 << 20
	// markDigits of the mark are in names: 96 bits that only the owner of the tag can compute.
	markDigits = 24
	idDigits   = 12
)

// Record is a VM as it was created. Power, node and addresses by DHCP, which may change, are read from vCenter instead.
type Record struct {
	VM       target.VM       `json:"vm"`
	Template string          `json:"template"`
	VCPUs    int             `json:"vcpus"`
	Topology target.Topology `json:"cpu_topology,omitzero"`
	RAMBytes int64           `json:"ram_bytes"`
	Slots    []Slot          `json:"slots"`            // of the data disks
	Seeded   bool            `json:"seeded,omitempty"` // its settings hold the identity of its guest
	Created  time.Time       `json:"created"`
}

// Slot is the place of a disk on the SCSI controllers of a VM.
type Slot struct {
	Bus  int32 `json:"bus"`
	Unit int32 `json:"unit"`
}

// Name is the name of a VM in vCenter, at most 80 characters: "bragg-OLTP-0001-<of its id>-<of the mark>".
func Name(mark, id, name string) string {
	const nameMax = 30
	return "bragg-" + target.SafeName(name, nameMax) + "-" + strings.ReplaceAll(id, "-", "")[:idDigits] + "-" + mark[:markDigits]
}

var nameText = regexp.MustCompile(`^bragg-[A-Za-z0-9_-]{0,30}-[0-9a-f]{12}-([0-9a-f]{24})$`)

// Annotation is the text at a VM for people, with the mark.
func Annotation(tag target.Tag) string {
	return fmt.Sprintf("VM of run %s of Bragg, which removes it at its end; bragg clean does it after a crash. Owner: %s", tag.Run, tag.Mark())
}

// Suspect reports whether a VM may be ours by its name or annotation alone, so that its settings are worth reading.
func Suspect(name, annotation string) bool {
	return strings.HasPrefix(name, "bragg-") || strings.Contains(annotation, " of Bragg, ")
}

// Settings returns ExtraConfig with the owner and the record.
func Settings(tag target.Tag, r Record) ([]types.BaseOptionValue, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("record vm %q: %w", r.VM.Name, err)
	}
	return Options(map[string]string{
		keyMark: tag.Mark(), keyRecord: base64.StdEncoding.EncodeToString(text), // names of VMs may contain what XML cannot
		keyRun: base64.StdEncoding.EncodeToString([]byte(tag.Run)),
	}), nil
}

// Options turns texts into ExtraConfig. An empty text removes a key.
func Options(texts map[string]string) []types.BaseOptionValue {
	var all []types.BaseOptionValue
	for key, value := range texts {
		all = append(all, &types.OptionValue{Key: key, Value: value})
	}
	return all
}

// Owner is what a VM says of its owner.
type Owner struct {
	Mark   string // "" if it is not one of Bragg
	Stray  bool   // it was never finished: Mark is the beginning of a mark, and Record has no more than its identity
	Copy   bool   // a user copied it from a VM of Bragg, whose settings it has: it belongs to that user
	Record Record
}

// Belongs reports whether the VM belongs to the owner with that mark.
func (o Owner) Belongs(mark string) bool {
	return o.Mark != "" && (o.Mark == mark || o.Stray && strings.HasPrefix(mark, o.Mark))
}

// Seen is a VM as vCenter shows it.
type Seen struct {
	Ref          string // its object in this vCenter: "vm-42"
	Name         string
	InstanceUUID string
	Extra        []types.BaseOptionValue
}

// Text returns a value of ExtraConfig.
func Text(extra []types.BaseOptionValue, key string) string {
	for _, one := range extra {
		if v := one.GetOptionValue(); v != nil && v.Key == key {
			text, _ := v.Value.(string)
			return text
		}
	}
	return ""
}

// Read finds the owner of a VM.
func Read(s Seen) Owner {
	mark := Text(s.Extra, keyMark)
	if mark == "" {
		m := nameText.FindStringSubmatch(s.Name)
		if m == nil {
			return Owner{}
		}
		return Owner{Mark: m[1], Stray: true, Record: Record{VM: target.VM{ID: s.Ref, Name: s.Name, Disks: []target.Disk{}}}}
	}
	var r Record
	if text := Text(s.Extra, keyRecord); len(text) <= recordBytesMax {
		if plain, err := base64.StdEncoding.DecodeString(text); err != nil || json.Unmarshal(plain, &r) != nil {
			r = Record{}
		}
	}
	switch {
	case r.VM.ID == "": // the mark still names the owner
		r.VM = target.VM{ID: s.InstanceUUID, Name: s.Name, Disks: []target.Disk{}}
	case r.VM.ID != s.InstanceUUID:
		return Owner{Copy: true}
	}
	return Owner{Mark: mark, Record: r}
}
