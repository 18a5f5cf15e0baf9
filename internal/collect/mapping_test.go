package collect_test

import (
	"fmt"
	"testing"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/target"
)

func TestMapping(t *testing.T) {
	m := collect.NewMapping([]target.Node{{ID: "n1", Name: "left", Address: "10.0.0.11"}}, []target.NodeConfig{{ID: "n2", UUID: "4C4C-02"}}, "0123456789abcdef")
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
		"vm with tag":    {target.Source{}, map[string]string{"vm": "OLTP-0001-01234567"}, "map[instance:OLTP-0001 node:n1 source:s vm:OLTP-0001 vm_group:OLTP]"},
		"vm of others":   {target.Source{}, map[string]string{"vm": "OLTP-0001-ffffffff", "node": "left"}, "map[exported_vm:OLTP-0001-ffffffff node:n1 source:s]"},
		"labels of runs": {target.Source{}, map[string]string{"run": "x", "source": "y", "vm_group": "z"}, "map[exported_run:x exported_source:y exported_vm_group:z source:s]"},
	} {
		c.source.Name = "s"
		if got := fmt.Sprint(m.Apply(c.source, c.labels)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
