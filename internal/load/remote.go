package load

// Remote is the other end of a load between two groups of VMs: its clients run on the group of the workload and are measured, its
// servers run on another group and only answer. The server of a load whose VMs go in step runs on the first of these VMs.
type Remote struct {
	// Serves: this VM runs one server for each of Peers, from Prepare until it is stopped. Otherwise it is a client of all Peers.
	Serves bool `json:"serves,omitempty"`
	// Address is where the peers reach this VM.
	Address string `json:"address,omitempty"`
	Peers   []Peer `json:"peers,omitempty"`
	VMs     int    `json:"vms,omitempty"`  // of the load
	Rank    int    `json:"rank,omitempty"` // of this one among them, from 0
	// Secret is shared by the VMs of a load and their servers.
	Secret []byte `json:"secret,omitempty"`
}

// Peer is a VM at the other end.
type Peer struct {
	VM      string `json:"vm"`
	Address string `json:"address,omitempty"` // as this VM reaches it; empty in plans
	Port    int    `json:"port,omitempty"`    // of its server, for clients
	// Place is that of this client among the clients of that server, from 0, and Clients is how many they are.
	Place   int `json:"place,omitempty"`
	Clients int `json:"clients,omitempty"`
}

// Connected reports whether this VM is a client whose servers answer.
func (r *Remote) Connected() bool { return !r.Serves && len(r.Peers) > 0 && r.Peers[0].Port > 0 }

// PeersMax bounds the peers of one VM.
const PeersMax = 64

// Server is implemented by Instances that serve, and by their Held.
type Server interface {
	// Ports returns where the servers answer, one for each of the workload's peers, in their order.
	Ports() []int
}
