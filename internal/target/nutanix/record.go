package nutanix

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
)

// A VM of Bragg is named
//
//	bragg-MARK-NAME-OLTP-0001
//
// with the first 128 bits of the mark of its owner, a digest of its name in the run, and as much of that name as Prism accepts. Its
// description is a sentence for administrators and the record, which has the whole mark. Both are in the request that makes the VM, so
// there is no VM without an owner; a clone gets the description of its source, so until it has its own the name alone tells whose it is.
const (
	prefix           = "bragg-"
	markDigits       = 32
	nameDigits       = 12
	shownMax         = 24
	descriptionMax   = 1000 // characters, by Prism's own check
	descriptionWords = "Made by Bragg for a test run, which removes it. Do not edit: "
)

// runPrefix begins the names of all objects of a run.
func runPrefix(mark string) string { return prefix + mark[:markDigits] + "-" }

// prismName is the name of a VM in Prism.
func prismName(mark, name string) string {
	sum := sha256.Sum256([]byte(name))
	return runPrefix(mark) + hex.EncodeToString(sum[:])[:nameDigits] + "-" + readable(name)
}

// readable is the part of a name that every system accepts.
func readable(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		return "vm"
	}
	return clean[:min(len(clean), shownMax)]
}

// record is what this program needs to know of a VM and Prism does not. Keys are short because descriptions are.
type record struct {
	Mark      string   `json:"m"`
	Name      string   `json:"n"`
	Group     string   `json:"g"`
	Ordinal   int      `json:"o"`
	Node      string   `json:"h"` // id of the host on which it starts
	Template  string   `json:"t"`
	VCPUs     int      `json:"c"`
	RAMBytes  int64    `json:"r"`
	DiskBytes []int64  `json:"d"`
	Addresses []string `json:"a,omitempty"` // assigned by the target file's range
}

// describe makes the description of a VM.
func (r record) describe() (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return "", err
	}
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		return "", err
	}
	all := descriptionWords + base64.RawURLEncoding.EncodeToString(packed.Bytes())
	if len(all) > descriptionMax {
		return "", fmt.Errorf("its name, group and disks need %d characters of a description, and Prism takes %d", len(all), descriptionMax)
	}
	return all, nil
}

const recordBytesMax = 64 << 10

// parseRecord reads a description; false: it is not of Bragg.
func parseRecord(description string) (r record, ok bool) {
	packed, ok := strings.CutPrefix(description, descriptionWords)
	if !ok {
		return r, false
	}
	data, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(packed))
	if err != nil {
		return r, false
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), recordBytesMax))
	if err != nil || json.Unmarshal(text, &r) != nil || len(r.Mark) != sha256.Size*2 {
		return record{}, false
	}
	return r, true
}

// info is a VM of Bragg.
type info struct {
	ahv.VM
	record   record
	finished bool // the record is its own
	short    string
}

// infoOf reads a VM; nil: it is not of Bragg. A VM whose name has the mark of a run and whose description is of another owner is not.
func infoOf(v ahv.VM) *info {
	rest, ok := strings.CutPrefix(v.Name, prefix)
	if !ok || len(rest) < markDigits+1 || rest[markDigits] != '-' {
		return nil
	}
	short := rest[:markDigits]
	if strings.Trim(short, "0123456789abcdef") != "" {
		return nil
	}
	r, read := parseRecord(v.Description)
	switch {
	case read && r.Mark[:markDigits] != short, !read && v.Description != "":
		return nil
	case read && prismName(r.Mark, r.Name) == v.Name:
		return &info{VM: v, record: r, finished: true, short: short}
	case read && strings.HasPrefix(v.Name, prismName(r.Mark, r.Name)):
		return nil // a user's copy, which has the description of its source, and its name with an addition
	}
	return &info{VM: v, short: short} // a clone that was not finished
}

func (i *info) ownedBy(mark string) bool {
	if i.finished {
		return i.record.Mark == mark
	}
	return strings.HasPrefix(mark, i.short)
}

func (i *info) name() string {
	if i.finished {
		return i.record.Name
	}
	return i.VM.Name
}

// vm is the VM as a value: on the node where it runs, or else on the one where it will.
func (i *info) vm(nodes []*node) target.VM {
	vm := target.VM{
		ID: i.ExtID, Name: i.name(), Group: i.record.Group, Ordinal: i.record.Ordinal, NodeID: i.record.Node, Disks: []target.Disk{},
		Addresses: slices.Clone(i.record.Addresses), Power: powerOf(i.Power),
	}
	for n, size := range i.record.DiskBytes {
		vm.Disks = append(vm.Disks, target.Disk{Device: "/dev/" + target.DiskName(n+1), SizeBytes: size})
	}
	if vm.Power != target.PowerOff {
		if n := byHost(nodes, i.HostID()); n != nil {
			vm.NodeID = n.id
		}
	}
	return vm
}

func powerOf(state string) target.PowerState {
	switch state {
	case ahv.On:
		return target.PowerOn
	case ahv.Off:
		return target.PowerOff
	}
	return target.PowerUnknown
}
