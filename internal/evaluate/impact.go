package evaluate

import (
	"cmp"

	"github.com/braggdev/bragg/internal/result"
)

// complete gives impacts the names of nodes and the units of loads.
func complete(list []result.Impact, m *result.Manifest) []result.Impact {
	names := map[string]string{}
	for _, n := range m.Target.Nodes {
		names[n.ID] = n.Name
	}
	for i := range list {
		for k, subject := range list[i].Subjects {
			list[i].Subjects[k] = cmp.Or(names[subject], subject)
		}
		for k := range list[i].Loads {
			l := &list[i].Loads[k]
			l.Unit = unitOf(l.Quantity, m.Engines[l.Workload])
		}
	}
	return list
}
