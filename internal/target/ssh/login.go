package ssh

import (
	"context"

	"github.com/braggdev/bragg/internal/target"
)

// optionPlaybooks lets programs of a scenario log in to the hosts themselves. It must be set because a playbook that is written for
// VMs may use the disks of its machine as a whole, and /dev/sdb of a host does not belong to a VM.
const (
	optionPlaybooks = "playbooks"
	playbooksHosts  = "hosts"
)

// logins describes the logins to hosts, which stand in for their VMs.
func (t *Target) logins() *target.Logins {
	l := &target.Logins{Hosts: true, Password: t.config.GuestCredential()}
	if t.config.Options[optionPlaybooks] != playbooksHosts {
		l.Lacks = []string{`"options: {playbooks: hosts}" in the target file, because VMs are processes here: a playbook changes the hosts, ` +
			"and /dev/sdb in it is a disk of the host"}
	}
	return l
}

// LoginVM is the login to the VM's host.
func (t *Target) LoginVM(ctx context.Context, vm target.VM, _ string) (target.Login, error) {
	return t.LoginNode(ctx, vm.NodeID)
}

// LoginNode is the login that Bragg itself uses, unless the target file names another user.
func (t *Target) LoginNode(ctx context.Context, nodeID string) (target.Login, error) {
	h, err := t.host(nodeID)
	if err != nil {
		return target.Login{}, err
	}
	l := target.Login{Machine: h.node.Name, Address: h.address.Address, Port: h.address.Port, User: h.address.User, Options: h.remote.Options, Configured: true}
	return l, t.config.LogIn(ctx, &l)
}
