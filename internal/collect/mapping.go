package collect

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/target"
)

// Mapping finds the nodes and VMs of a run by the names that a platform gives them. Its methods may be called from several goroutines.
type Mapping struct {
	mark  string // first digits of the ownership tag in the names of VMs
	nodes map[string]string

	mu  sync.Mutex
	vms map[string]target.VM // by name in the run; NodeID is the first node
}

const (
	markDigits = 24 // how much of an ownership tag names of VMs have at least
	idDigits   = 12 // of ids and digests in names
)

// NewMapping returns the mapping of a run on these nodes. mark is the ownership tag that platforms append to names of VMs.
func NewMapping(nodes []target.Node, config []target.NodeConfig, mark string) *Mapping {
	m := &Mapping{mark: mark[:min(len(mark), markDigits)], nodes: map[string]string{}, vms: map[string]target.VM{}}
	add := func(id string, names ...string) {
		for _, name := range names {
			if name != "" {
				m.nodes[strings.ToLower(name)] = id
			}
		}
	}
	for _, n := range nodes {
		add(n.ID, n.ID, n.Name, n.Address)
	}
	for _, n := range config {
		add(n.ID, n.ID, n.Name, n.Address, n.UUID)
	}
	return m
}

// Placed adds a VM, or completes what is known of it. A VM keeps its first node: a changed label would split its series.
func (m *Mapping) Placed(vm target.VM) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.vms[vm.Name]
	if known.NodeID != "" {
		vm.NodeID = known.NodeID
	}
	if vm.ID == "" {
		vm.ID = known.ID
	}
	m.vms[vm.Name] = vm
}

// Node returns the id of a node by a name of the platform: its id, name or address, with or without a port or domain.
func (m *Mapping) Node(name string) (id string, ok bool) {
	name = strings.ToLower(name)
	host, _, _ := strings.Cut(name, ":")
	short, _, _ := strings.Cut(name, ".")
	for _, try := range []string{name, host, short} {
		if id, ok = m.nodes[try]; ok {
			return id, true
		}
	}
	return "", false
}

// VM returns a VM of the run by a name of the platform: its name in the run or its id, alone, or with what providers append to names of VMs.
func (m *Mapping) VM(name string) (vm target.VM, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if vm, ok = m.vms[name]; ok {
		return vm, true
	}
	if name == "" {
		return target.VM{}, false
	}
	for _, vm := range m.vms {
		if name == vm.ID || m.names(vm, name) {
			return vm, true
		}
	}
	return target.VM{}, false
}

// names reports whether a name of the platform is that of a VM: it has the first or last digits of the VM's id, or the ownership tag with the name in the run or a
// digest of it. Names may be cut, so they are not enough.
func (m *Mapping) names(vm target.VM, name string) bool {
	if id := strings.ReplaceAll(vm.ID, "-", ""); len(id) >= idDigits &&
		(strings.Contains(name, id[:idDigits]) || strings.Contains(name, id[len(id)-idDigits:])) {
		return true
	}
	if m.mark == "" || !strings.Contains(name, m.mark) {
		return false
	}
	sum := sha256.Sum256([]byte(vm.Name))
	return strings.HasPrefix(name, vm.Name+"-") || strings.Contains(name, "-"+hex.EncodeToString(sum[:])[:idDigits]+"-")
}

// IsVM reports whether a VM of the platform is one of the run.
func (m *Mapping) IsVM(name string) bool {
	_, ok := m.VM(name)
	return ok
}

// Apply returns the labels of a sample with those of the run: node has the id of a node, and vm, instance, vm_group and node those of a
// VM. A node or VM that is not of the run keeps its name in exported_node or exported_vm, so that no query counts it as one.
func (m *Mapping) Apply(s target.Source, from map[string]string) map[string]string {
	labels := maps.Clone(from)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, own := range []string{LabelSource, "vm_group", "instance", "job", "run", "scenario"} {
		rename(labels, own, "exported_"+own)
	}
	node, vm := take(labels, LabelNode, s.NodeLabel, from), take(labels, LabelVM, s.VMLabel, from)
	if s.Node != "" {
		node = s.Node
	}
	labels[LabelSource] = s.Name
	if id, ok := m.Node(node); ok {
		labels[LabelNode] = id
	} else if node != "" {
		labels["exported_"+LabelNode] = node
	}
	if one, ok := m.VM(vm); ok {
		labels[LabelVM], labels["instance"], labels["vm_group"] = one.Name, one.Name, one.Group
		labels[LabelNode] = one.NodeID
		delete(labels, "exported_"+LabelNode)
	} else if vm != "" {
		labels["exported_"+LabelVM] = vm
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	return labels
}

// take removes a label that the run also uses, and returns the platform's name: from that label, or from another that the target file
// names, which stays.
func take(labels map[string]string, own, named string, from map[string]string) string {
	value := labels[own]
	if named == "" || named == own {
		delete(labels, own)
		return value
	}
	rename(labels, own, "exported_"+own)
	return from[named]
}

func rename(labels map[string]string, name, to string) {
	if value, ok := labels[name]; ok {
		delete(labels, name)
		labels[to] = value
	}
}
