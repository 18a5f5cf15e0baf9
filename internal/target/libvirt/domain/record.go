package domain

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// namespace of the metadata that every domain of Bragg carries from its definition on:
//
//	<bragg:vm xmlns:bragg="…" format="1" mark="…" controller="…" run="…">base64 of the record as JSON</bragg:vm>
//
// The mark alone names the owner of the domain; controller and run are for people who look at it.
const (
	namespace      = "https://bragg.dev/xmlns/libvirt/1"
	recordBytesMax = 1 << 20
)

// Record is a VM as it was created. Power, node and files, which may change outside, are read from the domain instead.
type Record struct {
	VM       target.VM       `json:"vm"`
	Template string          `json:"template"`
	VCPUs    int             `json:"vcpus"`
	Topology target.Topology `json:"cpu_topology,omitzero"`
	RAMBytes int64           `json:"ram_bytes"`
	MAC      string          `json:"mac"`
	Seeded   bool            `json:"seeded"` // it has a disk with the identity of its guest
	// Bases are volumes that the disks of this VM read from and that are not its own: of the VM it was cloned from, or
	// of a template that this run brought. They are kept for as long as a VM names them.
	Bases   []string  `json:"bases,omitempty"`
	Created time.Time `json:"created"`
}

// Metadata is the owner of a domain and its record.
type Metadata struct{ Mark, Controller, Run, Record string }

func (Metadata) Namespace() string { return namespace }

// NewMetadata describes a VM of the run that has the tag.
func NewMetadata(tag target.Tag, r Record) (*Metadata, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("record vm %q: %w", r.VM.Name, err)
	}
	return &Metadata{
		Mark: tag.Mark(), Controller: tag.Controller, Run: tag.Run,
		Record: base64.StdEncoding.EncodeToString(text), // names of VMs may contain what XML cannot
	}, nil
}

// Info is one domain as its host shows it, of Bragg or not.
type Info struct {
	ID     string  `xml:"id,attr"` // only of domains that run
	Name   string  `xml:"name"`
	UUID   string  `xml:"uuid"`
	Owners []owner `xml:"metadata>vm"`
	Disks  []struct {
		Driver struct {
			Type string `xml:"type,attr"`
		} `xml:"driver"`
		Source struct {
			File string `xml:"file,attr"`
		} `xml:"source"`
		Target struct {
			Dev string `xml:"dev,attr"`
		} `xml:"target"`
	} `xml:"devices>disk"`
}

type owner struct {
	XMLName xml.Name
	Mark    string `xml:"mark,attr"`
	Record  string `xml:",chardata"`
}

// Parse reads domains as virsh dumpxml prints them, one after the other.
func Parse(text []byte) ([]Info, error) {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	var all []Info
	for {
		var s Info
		switch err := decoder.Decode(&s); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read domain: %w", err)
		}
		all = append(all, s)
	}
}

// Active reports whether the domain has power.
func (s Info) Active() bool { return s.ID != "" }

// owner returns the metadata of a domain that one of our controllers made.
func (s Info) owner() owner {
	for _, o := range s.Owners {
		if o.XMLName.Space == namespace {
			return o
		}
	}
	return owner{}
}

// Mark returns the mark of the run that owns the domain; "" if it is not one of Bragg.
func (s Info) Mark() string { return s.owner().Mark }

// Record returns the record in the domain. If the record is unreadable, it contains only the identity: the mark still
// names the owner.
func (s Info) Record() Record {
	var r Record
	text := strings.TrimSpace(s.owner().Record)
	if len(text) <= recordBytesMax {
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			if json.Unmarshal(plain, &r) != nil || r.VM.ID != s.UUID || len(r.VM.Disks) > DisksMax {
				r = Record{}
			}
		}
	}
	if r.VM.ID == "" {
		r.VM = target.VM{ID: s.UUID, Name: s.Name}
	}
	return r
}

// Name is the display name of a domain; nothing depends on it.
func Name(id, name string) string {
	const nameMax = 40
	return "bragg-" + target.SafeName(name, nameMax) + "-" + id[:8] + id[24:]
}

// MAC derives the address of a VM's network interface.
func MAC(id string) string {
	sum := sha256.Sum256([]byte("mac " + id))
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", sum[0], sum[1], sum[2]) // the prefix of QEMU
}
