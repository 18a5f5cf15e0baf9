package loadtest

import (
	"fmt"
	"testing"

	"github.com/braggdev/bragg/internal/load"
)

// Split is a load whose server answers clients on other VMs, with one workload for each of them.
type Split struct {
	Server  load.Instance
	Port    int
	Clients []load.Workload
}

// Secret of the loads of Serve, and the password that their servers make of it.
const (
	Secret   = "not for everyone"
	Password = "6e6f7420666f722065766572796f6e65"
)

// Serve prepares the server of a workload, whose data exists, for clients on as many VMs. All of them are this machine. The working
// directory becomes an empty one, where clients keep their files.
func Serve(t *testing.T, g load.Generator, w load.Workload, vms int) Split {
	t.Helper()
	t.Chdir(t.TempDir())
	w.Remote = load.Remote{Serves: true, Address: "127.0.0.1", Secret: []byte(Secret)}
	for i := range vms {
		w.Remote.Peers = append(w.Remote.Peers, load.Peer{VM: fmt.Sprintf("clients-%d", i)})
	}
	in, err := g.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	s := Split{Server: in}
	ports := in.(load.Server).Ports()
	if len(ports) != vms {
		t.Fatalf("ports %v for %d VMs", ports, vms)
	}
	s.Port = ports[0]
	for i, port := range ports {
		c := w
		c.VM, c.Number, c.Devices = fmt.Sprintf("clients-%d", i), i, nil
		c.Remote = load.Remote{Secret: w.Remote.Secret, Rank: i, Peers: []load.Peer{{VM: "db-0001", Address: "127.0.0.1", Port: port, Place: i, Clients: vms}}}
		s.Clients = append(s.Clients, c)
	}
	return s
}
