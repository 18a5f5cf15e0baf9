package ssh_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/ssh"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// powered is hosts with simulated BMCs. Cutting the power of one ends its server of ssh and all sessions.
type powered struct {
	*rig
	bmcs []*targettest.BMC
	file target.Config
}

func newPowered(t *testing.T, count int) *powered {
	t.Helper()
	p := &powered{rig: newRig(t, count)}
	p.file = p.config()
	p.file.Credentials = targettest.Credentials(t)
	p.file.Options["ssh_options"] += " ConnectTimeout=5"
	// All hosts are this machine: its identity does not distinguish them, and its own VMs are of no concern.
	p.file.Allow = target.Allow{NodePower: true, Overrides: []string{target.OverrideIdentity, target.OverrideController, target.OverrideForeignVMs}}
	for i := range count {
		b := targettest.NewBMC(t, "", func(on bool) {
			if !on {
				p.KillServer(t, i)
			}
		})
		p.bmcs = append(p.bmcs, b)
		p.file.Nodes[i].BMC = b.Config
	}
	return p
}

// on opens the hosts as a new program does.
func (p *powered) on(t *testing.T) *ssh.Powered {
	t.Helper()
	o := target.OpenOptions{Authority: p.authority, Leases: p.pool, AgentProgram: ownProgram}
	opened, err := ssh.Provider().Open(t.Context(), p.file, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened.(*ssh.Powered)
}

// A host that this run has cut is not missed at the next cut, nor is one that is cut at the same time; any other is.
func TestSecondCut(t *testing.T) {
	p := newPowered(t, 4)
	l := p.on(t)
	l.LimitNodesOff(4)
	tag := targettest.NewTag("run-1")
	vms, err := l.Create(t.Context(), tag, []target.VMSpec{{Name: "A", NodeID: "node-4", VCPUs: 1, DiskBytes: []int64{1 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.PowerOffNode(t.Context(), "node-1"); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for _, node := range []string{"node-2", "node-3"} {
		go func() { errs <- l.PowerOffNode(t.Context(), node) }()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	p.bmcs[2].SetDeaf(true)
	p.bmcs[2].SetOff(false) // powered on by its button, and not answering yet
	err = l.PowerOffNode(t.Context(), "node-4")
	if diag.ExitCode(err) != diag.ExitRefused || !strings.Contains(err.Error(), "redundancy") {
		t.Errorf("a powered host that does not answer must not be a reason: %v", err)
	}
	if orders := p.bmcs[3].Resets(); len(orders) > 0 {
		t.Errorf("the BMC of node-4 got %q", orders)
	}
	if err := l.Delete(t.Context(), tag, vms); err != nil {
		t.Error(err)
	}
}

// The VMs of a host without power are known to the process that listed them before. Another process does not take the host
// for empty, nor the VMs of one run for those of another.
func TestOwnedWithoutPower(t *testing.T) {
	p := newPowered(t, 2)
	l := p.on(t)
	l.LimitNodesOff(1)
	tag, other, foreign := targettest.NewTag("run-1"), targettest.NewTag("run-2"), targettest.NewTag("run-3")
	create := func(tag target.Tag, name string) {
		t.Helper()
		var specs []target.VMSpec
		for i := range 2 {
			specs = append(specs, target.VMSpec{Name: fmt.Sprint(name, i+1), NodeID: fmt.Sprint("node-", i+1), VCPUs: 1, DiskBytes: []int64{1 << 20}})
		}
		if _, err := l.Create(t.Context(), tag, specs); err != nil {
			t.Fatal(err)
		}
	}
	create(tag, "A")
	create(other, "B")
	if err := l.PowerOffNode(t.Context(), "node-1"); err != nil {
		t.Fatal(err)
	}
	names := func(tag target.Tag) string {
		t.Helper()
		vms, err := l.Owned(t.Context(), tag)
		if err != nil {
			t.Error(err)
		}
		var all []string
		for _, vm := range vms {
			all = append(all, vm.Name+" "+string(vm.Power))
		}
		return strings.Join(all, ", ")
	}
	if got := names(tag); got != "A1 off, A2 off" {
		t.Errorf("of the run there is %q", got)
	}
	if got := names(other); got != "B1 off, B2 off" {
		t.Errorf("of the other run there is %q", got)
	}
	if vms, err := l.Owned(t.Context(), foreign); err == nil {
		t.Errorf("VMs of a run that was not listed while the host was on: %+v", vms)
	}
	later := p.on(t)
	vms, err := later.Owned(t.Context(), tag)
	if err == nil || !strings.Contains(err.Error(), "node-1") || diag.ExitCode(err) != diag.ExitUnavailable {
		t.Errorf("a program that never listed the host: %+v, %v", vms, err)
	}
	p.Serve(t, 0)
	p.bmcs[0].SetOff(false)
	for _, one := range []target.Tag{tag, other} {
		vms, err := later.Owned(t.Context(), one)
		if err == nil && len(vms) != 2 {
			err = errors.New("want two")
		}
		if err == nil {
			err = later.Delete(t.Context(), one, vms)
		}
		if err != nil {
			t.Errorf("%+v: %v", vms, err)
		}
	}
}

// One host under two names is not cut: the VMs on the other name would lose their power too.
func TestOneMachineAsTwoNodesIsNotCut(t *testing.T) {
	p := newPowered(t, 2)
	p.file.Allow.Overrides = []string{target.OverrideController, target.OverrideForeignVMs}
	l := p.on(t)
	l.LimitNodesOff(1)
	if seen, err := l.Foresee(t.Context(), "node-1"); err != nil || len(seen.SameAs) != 1 || seen.SameAs[0] != "node-2" {
		t.Errorf("before the cut: %+v, %v", seen, err)
	}
	err := l.PowerOffNode(t.Context(), "node-1")
	if diag.ExitCode(err) != diag.ExitRefused || !strings.Contains(err.Error(), "the same machine as node") {
		t.Errorf("got %v", err)
	}
	if orders := p.bmcs[0].Resets(); len(orders) > 0 {
		t.Errorf("the BMC of node-1 got %q", orders)
	}
}
