package libvirt

import (
	"context"
	"fmt"
	"net"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/agentlink"
	"github.com/braggdev/bragg/internal/target/libvirt/dhcp"
	"github.com/braggdev/bragg/internal/target/libvirt/events"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
	"github.com/braggdev/bragg/internal/trust"
)

// agents are the connections to agents of VMs.
type agents struct {
	cluster  *cluster
	link     *agentlink.Dialer
	listener *events.Listener // from the first call on
	surveys  sharedSurvey     // of callers who dial
}

func newAgents(hosts *cluster, authority *trust.Authority) *agents {
	a := &agents{cluster: hosts, listener: events.New()}
	a.link = &agentlink.Dialer{Authority: authority, AddressOf: a.AddressOf, MayAnswer: a.mayAnswer, Heard: a.listener.Heard}
	return a
}

// DialAgent connects to the agent of a VM, as soon as it answers, and verifies that it is the agent of that VM.
func (a *agents) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	if a.link.Authority != nil {
		a.listen()
	}
	return a.link.DialAgent(ctx, vm)
}

// listen begins to listen to the events of all nodes, once, and hangs up on agents of VMs that stop, so that no caller waits for them.
func (a *agents) listen() {
	hosts := make([]*virsh.Host, len(a.cluster.nodes))
	for i, n := range a.cluster.nodes {
		hosts[i] = n.Host
	}
	a.listener.Listen(hosts, a.hangUp)
}

// AddressOf returns the address that was given to a VM, or that it got by DHCP; see target.Addresser.
func (a *agents) AddressOf(ctx context.Context, vm target.VM) (string, error) {
	if len(vm.Addresses) > 0 {
		return vm.Addresses[0], nil
	}
	n, err := a.cluster.node(ctx, vm.NodeID)
	if err != nil {
		return "", err
	}
	ip, err := dhcp.Of(ctx, n.Host, vm.ID)
	if err == nil && ip == "" {
		err = fmt.Errorf("node %q knows no address of it yet", n.ID)
	}
	return ip, err
}

// hangUp ends the connections to the agent of a VM that has lost its power.
func (a *agents) hangUp(id string) { a.link.HangUp(id) }

// close ends all connections, and allows no new one.
func (a *agents) close() {
	a.link.Close()
	a.listener.Close()
}
