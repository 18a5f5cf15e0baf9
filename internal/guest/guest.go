// Package guest is the agent's program as the first process of a machine: a VM that consists of a kernel, some of its
// modules and bragg-agent, and boots in seconds. It is not a distribution: it has no shell, no login and no other program.
//
//	kernel ──▶ Init: file systems, modules, disks in order ──▶ seed ──▶ network ──▶ agent as a child
//	           power button, SIGTERM, end of the agent ──▶ agent stops ──▶ sync ──▶ power off
//
// The agent is a separate process, so that its crash does not panic the kernel. The VM's name, address and certificates come
// from the seed: the document of this file, on a small disk that package image makes. Package image also makes the
// initramfs, and lists its contents in a Modules.
package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path"
	"strings"

	"github.com/braggdev/bragg/internal/agent"
)

// Names on which package image and the first process agree.
const (
	// VolumeLabel is the label of a seed's file system, as in NoCloud.
	VolumeLabel = "cidata"
	// SeedFile is the document on a seed, in addition to the files of cloud-init.
	SeedFile = "bragg.json"
	// ModulesFile is where the first process reads its Modules.
	ModulesFile = "/etc/bragg/modules.json"
	// FilesDir is the folder for files of a seed.
	FilesDir = "/etc/bragg"
	// FirmwareSeed is the name under which QEMU's fw_cfg may provide the document instead of a disk.
	FirmwareSeed = "opt/org.bragg/seed"
)

// SeedVersion is incremented when an older guest could misread a seed.
const SeedVersion = 1

const (
	seedBytesMax = 1 << 20
	linksMax     = 16
	filesMax     = 64
)

// Seed has what distinguishes one VM from others: the content of SeedFile.
type Seed struct {
	Version    int    `json:"version"`
	InstanceID string `json:"instance_id"`
	Hostname   string `json:"hostname"`
	MachineID  string `json:"machine_id"` // 32 hexadecimal digits
	// Network describes the interfaces. Empty: DHCP on all.
	Network []Link `json:"network,omitempty"`
	// Agent is the agent's own configuration; its files are below FilesDir.
	Agent agent.Config `json:"agent"`
	// Files are written before the agent starts, readable by root only: path below FilesDir → content.
	Files map[string]string `json:"files,omitempty"`
}

// Link is one network interface.
type Link struct {
	MAC     string `json:"mac,omitempty"`     // selects the interface; empty: the first one
	Address string `json:"address,omitempty"` // with its prefix, "10.0.2.10/24"; empty: DHCP
	Gateway string `json:"gateway,omitempty"`
	MTU     int    `json:"mtu,omitempty"` // 0: unchanged
}

// ReadSeed reads a document and reports all its errors.
func ReadSeed(r io.Reader) (Seed, error) {
	text, err := io.ReadAll(io.LimitReader(r, seedBytesMax+1))
	if err != nil {
		return Seed{}, fmt.Errorf("read seed: %w", err)
	}
	if len(text) > seedBytesMax {
		return Seed{}, fmt.Errorf("read seed: more than %d bytes", seedBytesMax)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var s Seed
	if err := decoder.Decode(&s); err != nil {
		return Seed{}, fmt.Errorf("read seed: %w", err)
	}
	if decoder.More() {
		return Seed{}, errors.New("read seed: something follows the document")
	}
	if err := s.Check(); err != nil {
		return Seed{}, fmt.Errorf("read seed: %w", err)
	}
	return s, nil
}

// Check reports everything that a guest could not use.
func (s Seed) Check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if s.Version != SeedVersion {
		fault("version is %d, and this guest knows %d", s.Version, SeedVersion)
	}
	if !ValidInstanceID(s.InstanceID) {
		fault("instance_id %q: want 1 to 128 letters, digits, dots, dashes and underscores, a letter or digit first", s.InstanceID)
	}
	if s.Hostname != Hostname(s.Hostname) {
		fault("hostname %q: want lower-case letters, digits and dashes", s.Hostname)
	}
	if !validMachineID(s.MachineID) {
		fault("machine_id %q: want 32 hexadecimal digits, not all zero", s.MachineID)
	}
	if len(s.Network) > linksMax {
		fault("%d interfaces, want at most %d", len(s.Network), linksMax)
	}
	for i, l := range s.Network {
		if err := l.Check(); err != nil {
			fault("interface %d: %w", i, err)
		}
	}
	if s.Agent.Listen == "" {
		fault("agent.listen: want an address, such as \":7401\"")
	}
	if s.Agent.ConnectionFD != 0 || s.Agent.MetricsFD != 0 {
		fault("agent: a guest inherits no connections")
	}
	if len(s.Files) > filesMax {
		fault("%d files, want at most %d", len(s.Files), filesMax)
	}
	for name := range s.Files {
		if path.Clean(name) != name || !strings.HasPrefix(name, FilesDir+"/") || strings.ContainsRune(name, 0) {
			fault("file %q: want a path below %s", name, FilesDir)
		}
	}
	return errors.Join(faults...)
}

// Check reports all errors of one interface.
func (l Link) Check() error {
	var faults []error
	if l.MAC != "" {
		if mac, err := net.ParseMAC(l.MAC); err != nil || len(mac) != 6 {
			faults = append(faults, fmt.Errorf("mac %q: want six bytes like 52:54:00:12:34:56", l.MAC))
		}
	}
	own, err := netip.ParsePrefix(l.Address)
	switch {
	case l.Address == "" && l.Gateway != "":
		faults = append(faults, errors.New("a gateway without an address"))
	case l.Address == "":
	case err != nil:
		faults = append(faults, fmt.Errorf("address %q: want one with its prefix, like 10.0.2.10/24", l.Address))
	case own.Addr().IsUnspecified() || own.Addr().IsMulticast() || own.Addr().IsLoopback():
		faults = append(faults, fmt.Errorf("address %q cannot be a VM's", l.Address))
	}
	if l.Address != "" && l.Gateway != "" && err == nil {
		gateway, err := netip.ParseAddr(l.Gateway)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("gateway %q: want an address", l.Gateway))
		case !own.Contains(gateway):
			faults = append(faults, fmt.Errorf("gateway %q is not in %s", l.Gateway, own.Masked()))
		case gateway == own.Addr():
			faults = append(faults, fmt.Errorf("gateway %q is the VM's own address", l.Gateway))
		}
	}
	if l.MTU != 0 && (l.MTU < 576 || l.MTU > 65535) {
		faults = append(faults, fmt.Errorf("mtu %d: want 576 to 65535", l.MTU))
	}
	return errors.Join(faults...)
}

// ValidInstanceID reports whether id can be an instance id: cloud-init makes a folder of this name.
func ValidInstanceID(id string) bool {
	if len(id) == 0 || len(id) > 128 {
		return false
	}
	for i, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && strings.IndexByte("._-", c) >= 0:
		default:
			return false
		}
	}
	return true
}

func validMachineID(id string) bool {
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == "" && strings.Trim(id, "0") != ""
}

// Hostname turns any VM name into a valid host name: lower-case letters, digits and dashes, at most 63. Two VM names may
// yield the same host name.
func Hostname(vm string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(vm) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
		if b.Len() == 63 {
			break
		}
	}
	if name := strings.Trim(b.String(), "-"); name != "" {
		return name
	}
	return "vm"
}

// Modules lists the kernel modules in an initramfs, and which of them to load.
type Modules struct {
	Release string            `json:"release"` // of the kernel
	Load    []string          `json:"load"`    // always, in this order
	Modules map[string]Module `json:"modules"` // by name, with underscores
}

// Module is one of the kernel's modules.
type Module struct {
	Path  string   `json:"path"`
	Needs []string `json:"needs,omitempty"` // modules that must be loaded before
	// Aliases, if there are any, mean that a module is loaded only for existing hardware: patterns of path.Match for the
	// modalias of a device.
	Aliases    []string `json:"aliases,omitempty"`
	Parameters string   `json:"parameters,omitempty"`
}

// Order returns the names of modules to load for the given modaliases of devices, each after its dependencies.
func (m Modules) Order(present []string) []string {
	var order []string
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		one, ok := m.Modules[name]
		if !ok {
			return // built into the kernel
		}
		for _, need := range one.Needs {
			visit(need)
		}
		order = append(order, name)
	}
	for _, name := range m.Load {
		if one := m.Modules[name]; len(one.Aliases) == 0 || one.drives(present) {
			visit(name)
		}
	}
	return order
}

func (m Module) drives(present []string) bool {
	for _, alias := range m.Aliases {
		for _, device := range present {
			if ok, err := path.Match(alias, device); ok && err == nil {
				return true
			}
		}
	}
	return false
}
