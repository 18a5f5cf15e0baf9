package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/agentlink"
)

// agents are the connections to agents of VMs: to the addresses of their pods, or through the API server.
type agents struct {
	cluster *cluster
	vms     contact
	mode    string
	link    *agentlink.Dialer
	forward atomic.Bool // with agentsAuto: pods cannot be reached directly
	routed  atomic.Bool // with agentsAuto: they can
}

// directMax is how long a pod may take to accept a connection at its own address before it is reached through the API server.
const directMax = 2 * time.Second

// DialAgent connects to the agent of a VM, as soon as it answers, and verifies that it is the agent of that VM.
func (a *agents) DialAgent(ctx context.Context, vm target.VM) (net.Conn, error) {
	return a.link.DialAgent(ctx, vm)
}

// AddressOf returns the address of a VM: that of its pod.
func (a *agents) AddressOf(ctx context.Context, vm target.VM) (string, error) {
	if err := a.cluster.usable(ctx); err != nil {
		return "", err
	}
	at, err := a.vms.address(ctx, vm.ID)
	if err == nil && at == "" {
		err = fmt.Errorf("vm %q has no address yet", vm.Name)
	}
	return at, err
}

// mayAnswer returns why an agent cannot answer: a target.StoppedError where its pod has ended.
func (a *agents) mayAnswer(ctx context.Context, vm target.VM, _ bool) error {
	if err := a.cluster.usable(ctx); err != nil {
		return err
	}
	s, err := a.vms.now(ctx, vm.ID)
	switch {
	case err != nil:
		return err
	case s.power == target.PowerOn && a.cluster.power.off(ctx, s.node):
		return fmt.Errorf("node %q has no power", s.node)
	case s.power == target.PowerOn:
		return nil
	case s.ended.reason == "":
		s.ended.reason = "it was not started"
	}
	return &target.StoppedError{VM: vm.Name, Reason: s.ended.reason, At: s.ended.at}
}

// dial connects to a port of a pod.
func (a *agents) dial(ctx context.Context, vm target.VM, at string) (net.Conn, error) {
	if a.mode == agentsForward || a.mode == agentsAuto && a.forward.Load() {
		return a.vms.tunnel(ctx, vm.ID, address.AgentPort)
	}
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if a.mode == agentsAuto && !a.routed.Load() {
		bounded, cancel = context.WithTimeout(ctx, directMax)
	}
	defer cancel()
	var plain net.Dialer
	conn, err := plain.DialContext(bounded, "tcp", at)
	switch {
	case err == nil:
		a.routed.Store(true)
		return conn, nil
	case a.mode == agentsDirect || a.routed.Load() || a.cluster.client.InCluster || ctx.Err() != nil:
		return nil, err
	}
	through, forwardErr := a.vms.tunnel(ctx, vm.ID, address.AgentPort)
	if forwardErr != nil {
		return nil, errors.Join(err, forwardErr)
	}
	a.forward.Store(true)
	return through, nil
}
