package collect_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/vsphere/record"
)

func TestMapping(t *testing.T) {
	mark := target.Tag{Run: "r"}.Mark()
	m := collect.NewMapping([]target.Node{{ID: "n1", Name: "left", Address: "10.0.0.11"}}, []target.NodeConfig{{ID: "n2", UUID: "4C4C-02"}}, mark)
	m.Placed(target.VM{Name: "OLTP-0001", Group: "OLTP", NodeID: "n1"})
	m.Placed(target.VM{ID: "vm-17", Name: "OLTP-0001", Group: "OLTP", NodeID: "n2"}) // it moved
	for name, c := range map[string]struct {
		source target.Source
		labels map[string]string
		want   string
	}{
		"nothing":        {want: "map[source:s]"},
		"node":           {target.Source{NodeLabel: "host"}, map[string]string{"host": "LEFT.lab:9100"}, "map[host:LEFT.lab:9100 node:n1 source:s]"},
		"address":        {target.Source{NodeLabel: "instance"}, map[string]string{"instance": "10.0.0.11:9100"}, "map[exported_instance:10.0.0.11:9100 node:n1 source:s]"},
		"uuid":           {target.Source{}, map[string]string{"node": "4c4c-02"}, "map[node:n2 source:s]"},
		"other node":     {target.Source{}, map[string]string{"node": "right"}, "map[exported_node:right source:s]"},
		"fixed":          {target.Source{Node: "left"}, map[string]string{"node": "x", "device": "sda"}, "map[device:sda node:n1 source:s]"},
		"vm":             {target.Source{VMLabel: "domain"}, map[string]string{"domain": "OLTP-0001"}, "map[domain:OLTP-0001 instance:OLTP-0001 node:n1 source:s vm:OLTP-0001 vm_group:OLTP]"},
		"vm by id":       {target.Source{}, map[string]string{"vm": "vm-17"}, "map[instance:OLTP-0001 node:n1 source:s vm:OLTP-0001 vm_group:OLTP]"},
		"vm with tag":    {target.Source{}, map[string]string{"vm": "OLTP-0001-" + mark[:24]}, "map[instance:OLTP-0001 node:n1 source:s vm:OLTP-0001 vm_group:OLTP]"},
		"vm of others":   {target.Source{}, map[string]string{"vm": "OLTP-0001-ffffffff", "node": "left"}, "map[exported_vm:OLTP-0001-ffffffff node:n1 source:s]"},
		"labels of runs": {target.Source{}, map[string]string{"run": "x", "source": "y", "vm_group": "z"}, "map[exported_run:x exported_source:y exported_vm_group:z source:s]"},
	} {
		c.source.Name = "s"
		if got := fmt.Sprint(m.Apply(c.source, c.labels)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestNamesOfProviders: VMs are found by the names that providers give them on their platforms, and only those of the run.
func TestNamesOfProviders(t *testing.T) {
	mark, other := target.Tag{Run: "r", Nonce: "1"}.Mark(), target.Tag{Run: "r", Nonce: "2"}.Mark()
	name := "A long group of databases-0001"
	digest := sha256.Sum256([]byte(name))
	for what, c := range map[string]struct{ id, named, foreign string }{
		"vsphere": {target.VMID(mark, name), record.Name(mark, target.VMID(mark, name), name), record.Name(other, target.VMID(other, name), name)},
		"libvirt": {target.VMID(mark, name), domain.Name(target.VMID(mark, name), name), domain.Name(target.VMID(other, name), name)},
		"nutanix": {"5c0d9b5e-0000-4000-8000-000000000001", "bragg-" + mark[:32] + "-" + hex.EncodeToString(digest[:])[:12] + "-A_long_group_of_database",
			"bragg-" + other[:32] + "-" + hex.EncodeToString(digest[:])[:12] + "-A_long_group_of_database"},
	} {
		m := collect.NewMapping(nil, nil, mark)
		m.Placed(target.VM{Name: "A long group of databases-0002", NodeID: "n2"})
		m.Placed(target.VM{ID: c.id, Name: name, NodeID: "n1"})
		if vm, ok := m.VM(c.named); !ok || vm.Name != name {
			t.Errorf("%s: %q is %+v", what, c.named, vm)
		}
		if vm, ok := m.VM(c.foreign); ok {
			t.Errorf("%s: %q of another run is %+v", what, c.foreign, vm)
		}
	}
}
