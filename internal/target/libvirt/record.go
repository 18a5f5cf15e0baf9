package libvirt

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

// namespace of the metadata that every domain of ours carries from its definition on:
//
//	<bragg:vm xmlns:bragg="…" format="1" mark="…" controller="…" run="…">base64 of the record as JSON</bragg:vm>
//
// The mark alone says whose the domain is; controller and run are for people who look at it.
const (
	namespace      = "https://bragg.dev/xmlns/libvirt/1"
	recordBytesMax = 1 << 20
)

// record is a VM as it was made. What can change outside (power, node, files) is read from the domain instead.
type record struct {
	VM       target.VM `json:"vm"`
	Template string    `json:"template"`
	VCPUs    int       `json:"vcpus"`
	RAMBytes int64     `json:"ram_bytes"`
	MAC      string    `json:"mac"`
	Seeded   bool      `json:"seeded"` // it has a disk that tells its guest who it is
	// Bases are volumes that the disks of this VM read from and that are not its own: of the VM it was cloned from, or
	// of a template that this run brought. They are kept for as long as a VM names them.
	Bases   []string  `json:"bases,omitempty"`
	Created time.Time `json:"created"`
}

// vm is the record as a value that callers may change.
func (r record) vm() target.VM {
	vm := r.VM
	vm.Addresses = append([]string(nil), r.VM.Addresses...)
	vm.Disks = append([]target.Disk{}, r.VM.Disks...)
	return vm
}

// metadata is the record as it is written into a domain.
type metadata struct {
	XMLName    xml.Name `xml:"bragg:vm"`
	Space      string   `xml:"xmlns:bragg,attr"`
	Format     int      `xml:"format,attr"`
	Mark       string   `xml:"mark,attr"`
	Controller string   `xml:"controller,attr"`
	Run        string   `xml:"run,attr"`
	Record     string   `xml:",chardata"`
}

func newMetadata(tag target.Tag, r record) (metadata, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return metadata{}, fmt.Errorf("record vm %q: %w", r.VM.Name, err)
	}
	return metadata{
		Space: namespace, Format: 1, Mark: tag.Mark(), Controller: tag.Controller, Run: tag.Run,
		// Names of VMs may hold what XML cannot.
		Record: base64.StdEncoding.EncodeToString(text),
	}, nil
}

// sight is one domain as a node shows it.
type sight struct {
	ID         string  `xml:"id,attr"` // only of domains that run
	Name       string  `xml:"name"`
	UUID       string  `xml:"uuid"`
	Owners     []owner `xml:"metadata>vm"`
	Disks      []disk  `xml:"devices>disk"`
	Interfaces []nic   `xml:"devices>interface"`
}

type owner struct {
	XMLName xml.Name
	Mark    string `xml:"mark,attr"`
	Record  string `xml:",chardata"`
}

// parseSights reads domains as virsh dumpxml prints them, one after the other.
func parseSights(text []byte) ([]sight, error) {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	var all []sight
	for {
		var s sight
		switch err := decoder.Decode(&s); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read domain: %w", err)
		}
		all = append(all, s)
	}
}

// active tells whether the domain has power.
func (s sight) active() bool { return s.ID != "" }

// owner returns what one of our controllers wrote into the domain, nothing for any other domain.
func (s sight) owner() owner {
	for _, o := range s.Owners {
		if o.XMLName.Space == namespace {
			return o
		}
	}
	return owner{}
}

// mark returns the mark of a domain that one of our controllers made, "" of any other.
func (s sight) mark() string { return s.owner().Mark }

// record returns what the domain says of itself. Of a record that cannot be read, only the identity remains: the mark
// still says whose it is.
func (s sight) record() record {
	var r record
	text := strings.TrimSpace(s.owner().Record)
	if len(text) <= recordBytesMax {
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			if json.Unmarshal(plain, &r) != nil || r.VM.ID != s.UUID || len(r.VM.Disks) > disksMax {
				r = record{}
			}
		}
	}
	if r.VM.ID == "" {
		r.VM = target.VM{ID: s.UUID, Name: s.Name}
	}
	return r
}

// vmID derives the identity of a VM, which is its UUID in libvirt, from its name and owner: two names or two owners never
// share one, and making the same VM twice is noticed.
func vmID(mark, name string) string {
	sum := sha256.Sum256([]byte("vm " + mark + "\x00" + name))
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8: made in a way of our own
	h := hex.EncodeToString(b)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

var idText = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// domainName is for people; nothing depends on it.
func domainName(id, name string) string {
	const nameMax = 40
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '_'
	}, name)
	return "bragg-" + safe[:min(len(safe), nameMax)] + "-" + id[:8] + id[24:]
}

// macOf derives the address of a VM's network card.
func macOf(id string) string {
	sum := sha256.Sum256([]byte("mac " + id))
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", sum[0], sum[1], sum[2]) // the prefix of QEMU
}
