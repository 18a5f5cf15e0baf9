package faults

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest/faulttest"
	"github.com/braggdev/bragg/internal/target/vsphere"
)

// harness is for the list of faults that every provider passes.
func harness() faulttest.Harness {
	return faulttest.Harness{
		Provider: vsphere.Provider(), Threads: 2,
		Open: func(ctx context.Context, c target.Config) (target.Target, error) {
			return vsphere.Provider().Open(ctx, c, target.OpenOptions{})
		},
		Start: func(t *testing.T) faulttest.Platform { return newRig(t).platform(t) },
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	harness().Run(t)
}

func (r *rig) platform(t *testing.T) faulttest.Platform {
	planted := map[string]types.ManagedObjectReference{}
	return faulttest.Platform{
		File: r.file, Secrets: []string{vcsim.Password}, Front: r.Front, Change: change, Busy: busyVCenter,
		ExpireSessions: func() { r.expireSessions(t) },
		RememberTasks: func(yes bool) {
			r.forgetTasks()
			if yes {
				r.Model.Map().Handler = nil
			}
		},
		Left: func() []string {
			return slices.DeleteFunc(r.left(), func(name string) bool { return planted[name] == r.VMs()[name] && planted[name].Value != "" })
		},
		Plant: func(t *testing.T, name string) {
			// The end of a name cannot be guessed, so that another owner's differs in it.
			name = name[:len(name)-markDigits] + strings.Repeat("0", markDigits)
			planted[name] = r.plant(t, name)
		},
		Intact: func() error {
			there := r.VMs()
			for name, ref := range planted {
				if there[name] != ref {
					return fmt.Errorf("the VM %q of another owner is gone", name)
				}
			}
			return nil
		},
	}
}

// markDigits of a name belong to the owner.
const markDigits = 24

// change is the method of a call of SOAP that changes the vCenter.
func change(q *http.Request) string {
	method := called(q)
	switch {
	case strings.HasSuffix(method, "_Task"), method == "UnregisterVM", method == "UpdateOptions":
		return method
	}
	return ""
}

func busyVCenter(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

// expireSessions ends the sessions of all users but the test's own.
func (r *rig) expireSessions(t *testing.T) {
	t.Helper()
	manager := session.NewManager(r.Client().Client)
	own, err := manager.UserSession(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	var all mo.SessionManager
	if err := r.Client().RetrieveOne(t.Context(), *r.Client().ServiceContent.SessionManager, []string{"sessionList"}, &all); err != nil {
		t.Error(err)
		return
	}
	for _, s := range all.SessionList {
		if s.Key != own.Key {
			_ = manager.TerminateSession(t.Context(), []string{s.Key}) // it may have ended meanwhile
		}
	}
}

// plant makes a VM of another owner.
func (r *rig) plant(t *testing.T, name string) types.ManagedObjectReference {
	t.Helper()
	finder := find.NewFinder(r.Client().Client)
	center, err := finder.DefaultDatacenter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	folders, err := center.Folders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	finder.SetDatacenter(center)
	pools, err := finder.ResourcePoolList(t.Context(), "*/Resources")
	if err != nil {
		t.Fatal(err)
	}
	task, err := folders.VmFolder.CreateVM(t.Context(), types.VirtualMachineConfigSpec{
		Name: name, GuestId: string(types.VirtualMachineGuestOsIdentifierOtherGuest), Annotation: "database of accounting",
		Files: &types.VirtualMachineFileInfo{VmPathName: "[LocalDS_0]"},
	}, pools[len(pools)-1], nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := task.WaitForResult(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return made.Result.(types.ManagedObjectReference)
}
