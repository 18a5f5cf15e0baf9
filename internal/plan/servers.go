package plan

import "fmt"

// Servers are the VMs at the other end of a workload between two groups.
type Servers struct {
	Group string `json:"vm_group"`
	Mesh  bool   `json:"mesh,omitempty"` // every client has every server; otherwise, client i has server i modulo their number
	// First: the VMs of the workload itself go in step, and the first one has the only server, of which all are clients.
	First bool `json:"first,omitempty"`
	Same  bool `json:"same,omitempty"` // clients and servers are the same VMs, none of which is its own server
	// Holds: the data of the load is on the servers, where its prefill runs.
	Holds bool `json:"holds,omitempty"`
}

// DataGroup is the group on whose disks the data of a workload is.
func (w *Workload) DataGroup() string {
	if w.Servers != nil && w.Servers.Holds {
		return w.Servers.Group
	}
	return w.Group
}

// Of returns the servers of a client, by their ordinals.
func (s Servers) Of(client, servers int) (list []int) {
	if s.First && servers > 0 {
		return []int{0}
	}
	if servers == 0 || s.Same && servers == 1 {
		return nil
	}
	if !s.Mesh {
		if s.Same {
			client++ // the next one
		}
		return []int{client % servers}
	}
	for i := range servers {
		if !s.Same || i != client {
			list = append(list, i)
		}
	}
	return list
}

// Clients is how many clients a server has at most.
func (s Servers) Clients(clients, servers int) int {
	switch {
	case s.First || s.Mesh && !s.Same:
		return clients
	case s.Mesh:
		return clients - 1
	case servers == 0:
		return 0
	}
	return (clients + servers - 1) / servers
}

func (s Servers) pairing() string {
	switch {
	case s.First:
		return "its VMs wait for each other, and the first one coordinates them"
	case s.Mesh && s.Same:
		return "every VM with every other one"
	case s.Mesh:
		return "every client with every server"
	case s.Same:
		return "every VM with the next one"
	}
	return fmt.Sprintf("client i with server i modulo the number of VMs of %s", s.Group)
}
