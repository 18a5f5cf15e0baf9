package faults

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere"
	"github.com/braggdev/bragg/internal/target/vsphere/privilege"
)

// deny makes the vCenter refuse a method for want of a privilege.
func (r *rig) deny(method, privilege string) {
	r.Model.Map().Handler = func(_ *simulator.Context, m *simulator.Method) (mo.Reference, types.BaseMethodFault) {
		if m.Name == method {
			return nil, &types.NoPermission{Object: &m.This, PrivilegeId: privilege}
		}
		return nil, nil
	}
}

// A role that lacks a privilege lacks it for all VMs: one message says so, and names objects as people know them.
func TestDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.open(t)
	for _, c := range []struct {
		method, privilege, want string
		act                     func(vms []target.VM) error
	}{
		{"CloneVM_Task", "VirtualMachine.Provisioning.DeployTemplate", `create VMs "OLTP-0002", "OLTP-0003", "OLTP-0004" and 1 more: ` +
			`user "bragg@vsphere.local" lacks the privilege VirtualMachine.Provisioning.DeployTemplate on VM "linux"`, func([]target.VM) error {
			_, err := v.Create(t.Context(), r.tag, specs(t.Context(), v, 5)[1:])
			return err
		}},
		{"PowerOnVM_Task", "VirtualMachine.Interact.PowerOn", `lacks the privilege VirtualMachine.Interact.PowerOn on VM "bragg-OLTP-0001-`, func(vms []target.VM) error {
			return v.(target.VMPower).PowerOnVMs(t.Context(), r.tag, vms)
		}},
		{"ReconfigureComputeResource_Task", "Host.Inventory.EditCluster", `lacks the privilege Host.Inventory.EditCluster on cluster "DC0_C0"`, func(vms []target.VM) error {
			return v.(target.Placer).SetHA(t.Context(), r.tag, vms, false)
		}},
	} {
		vms := r.create(t, v, 1)
		r.deny(c.method, c.privilege)
		err := c.act(vms)
		r.Model.Map().Handler = nil
		if err == nil || diag.ExitCode(err) != diag.ExitUnavailable || !strings.Contains(diag.Sentence(err), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if err := v.Delete(t.Context(), r.tag, vms); err != nil {
			t.Fatal(err)
		}
	}
}

// A server that is not a vCenter is reported as such.
func TestNotAVCenter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	t.Cleanup(other.Close)
	config := r.config
	config.Endpoint, config.Fingerprint, config.TLS = strings.TrimPrefix(other.URL, "https://"), "", target.TLSUnverified
	_, err := vsphere.Provider().Open(t.Context(), config, target.OpenOptions{})
	var user *diag.Error
	if !errors.As(err, &user) || user.Code != "vsphere-unreachable" || !strings.Contains(user.Hint, "check the endpoint") {
		t.Errorf("got %v", err)
	}
}

// Every privilege that is checked has the name that a vCenter knows, which a new role with all of them proves.
func TestPrivilegesExist(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, k := range privilege.Kinds() {
		if _, err := object.NewAuthorizationManager(r.Client().Client).AddRole(t.Context(), "for "+string(k), privilege.Needed(k)); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
	if _, err := object.NewAuthorizationManager(r.Client().Client).AddRole(t.Context(), "wrong", []string{"VirtualMachine.Config.Unknown"}); err == nil {
		t.Error("the simulator accepts any name")
	}
}
