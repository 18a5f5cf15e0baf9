// Package faults tests what a target on a vCenter does when the vCenter, its users or another controller do not do what is
// expected.
package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/target/vsphere"
)

// called returns the method of a request of SOAP, which stays readable.
func called(r *http.Request) string {
	text, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	_, after, _ := bytes.Cut(text, []byte("<Body>"))
	_, after, _ = bytes.Cut(after, []byte("<"))
	name, _, _ := strings.Cut(string(after), " ")
	name, _, _ = strings.Cut(name, ">")
	return name
}

// When the session ends, the calls of all callers go on after one login.
func TestSessionExpires(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.open(t)
	r.create(t, v, 2)
	r.expireSessions(t)
	var logins atomic.Int64
	r.Front(func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if called(q) == "Login" {
				logins.Add(1)
			}
			inner.ServeHTTP(w, q)
		})
	})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if vms, err := v.Owned(t.Context(), r.tag); err != nil || len(vms) != 2 {
				t.Errorf("owned %v, %v", vms, err)
			}
		})
	}
	wait.Wait()
	if n := logins.Load(); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}

// A caller that gives up does not wait for a vCenter that does not answer.
func TestSilentVCenter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.open(t)
	release := make(chan struct{})
	r.Front(func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			select {
			case <-release:
			case <-q.Context().Done():
				return
			}
			inner.ServeHTTP(w, q)
		})
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := v.Owned(ctx, r.tag); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(release)
}

// forgetTasks makes the vCenter know no task any more.
func (r *rig) forgetTasks() {
	r.Model.Map().Handler = func(_ *simulator.Context, m *simulator.Method) (mo.Reference, types.BaseMethodFault) {
		if q, ok := m.Body.(*types.RetrievePropertiesEx); ok {
			for _, spec := range q.SpecSet {
				for _, o := range spec.ObjectSet {
					if o.Obj.Type == "Task" {
						return nil, &types.ManagedObjectNotFound{Obj: o.Obj}
					}
				}
			}
		}
		return nil, nil
	}
}

// After a restart of the vCenter its tasks are gone: what they did is looked for.
func TestLostTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.open(t)
	vms := r.create(t, v, 1)
	r.forgetTasks()
	power := v.(target.VMPower)
	if err := power.PowerOnVMs(t.Context(), r.tag, vms); err != nil {
		t.Error(err)
	}
	if err := power.PowerOffVMs(t.Context(), r.tag, vms); err != nil {
		t.Error(err)
	}
	// The result of a snapshot cannot be distinguished from that of an older one.
	if err := v.(target.Snapshotter).SnapshotVMs(t.Context(), r.tag, vms, "s"); err == nil {
		t.Error("a snapshot whose task was lost succeeded")
	}
	r.Model.Map().Handler = nil
	if err := v.Delete(t.Context(), r.tag, vms); err != nil {
		t.Error(err)
	}
}

// A user's copy of a VM has all settings of the original, and belongs to the user.
func TestCopyOfUser(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.open(t)
	vms := r.create(t, v, 1)
	var original mo.VirtualMachine
	for name, ref := range r.VMs() {
		if strings.HasPrefix(name, "bragg-OLTP") {
			if err := r.Client().RetrieveOne(t.Context(), ref, []string{"config", "parent", "resourcePool"}, &original); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder := object.NewFolder(r.Client().Client, *original.Parent)
	vm := object.NewVirtualMachine(r.Client().Client, original.Self)
	made, err := vm.Clone(t.Context(), folder, original.Config.Name+" copy", types.VirtualMachineCloneSpec{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := made.WaitForResult(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	task, err := object.NewVirtualMachine(r.Client().Client, info.Result.(types.ManagedObjectReference)).Reconfigure(t.Context(),
		types.VirtualMachineConfigSpec{Annotation: original.Config.Annotation, ExtraConfig: original.Config.ExtraConfig})
	if err == nil {
		err = task.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.Owned(t.Context(), r.tag); err != nil || len(got) != 1 || got[0].ID != vms[0].ID {
		t.Errorf("owned %+v, %v", got, err)
	}
	if err := v.Delete(t.Context(), r.tag, vms); err != nil {
		t.Fatal(err)
	}
	if left := r.left(); len(left) != 1 || !strings.HasSuffix(left[0], " copy") {
		t.Errorf("left: %q, want the copy", left)
	}
}

// Settings of VMs in the cluster end with the VMs.
func TestOverridesAreRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.open(t)
	vms := r.create(t, v, 2)
	p := v.(target.Placer)
	for range 2 {
		if err := errors.Join(p.SetHA(t.Context(), r.tag, vms, false), p.SetBalancing(t.Context(), r.tag, vms, false)); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (ha, drs int) {
		cluster := r.Model.Map().Any("ClusterComputeResource").(*simulator.ClusterComputeResource)
		config := cluster.ConfigurationEx.(*types.ClusterConfigInfoEx)
		return len(config.DasVmConfig), len(config.DrsVmConfig)
	}
	if ha, drs := count(); ha != 2 || drs != 2 {
		t.Errorf("%d and %d VMs have settings of their own, want 2", ha, drs)
	}
	if err := p.SetHA(t.Context(), r.tag, vms[:1], true); err != nil {
		t.Fatal(err)
	}
	if ha, drs := count(); ha != 1 || drs != 2 {
		t.Errorf("%d and %d VMs have settings of their own, want 1 and 2", ha, drs)
	}
	if err := v.Delete(t.Context(), r.tag, vms); err != nil {
		t.Fatal(err)
	}
	if ha, drs := count(); ha != 0 || drs != 0 {
		t.Errorf("%d and %d settings of VMs are left", ha, drs)
	}
}

// A vCenter shows VMs of a host that does not answer as it saw them last, which says nothing.
func TestVMsOfSilentHost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.open(t)
	vms := r.create(t, v, 2)
	if err := v.(target.VMPower).PowerOnVMs(t.Context(), r.tag, vms); err != nil {
		t.Fatal(err)
	}
	r.SetHostPower(vms[0].NodeID, false)
	got, err := v.Owned(t.Context(), r.tag)
	if err != nil || got[0].Power != target.PowerUnknown || got[1].Power != target.PowerOn {
		t.Errorf("owned %+v, %v", got, err)
	}
	if v.(target.HostChecker).HostUp(t.Context(), vms[0].NodeID) == nil || v.(target.ReadyChecker).Ready(t.Context()) == nil {
		t.Error("a host without power is up")
	}
}

// granting is a vCenter whose user has not got some privileges.
type granting struct {
	*simulator.AuthorizationManager
	lacks map[string]bool
}

func (g *granting) HasPrivilegeOnEntities(q *types.HasPrivilegeOnEntities) soap.HasFault {
	body := g.AuthorizationManager.HasPrivilegeOnEntities(q).(*methods.HasPrivilegeOnEntitiesBody)
	for i := range body.Res.Returnval {
		for j, p := range body.Res.Returnval[i].PrivAvailability {
			body.Res.Returnval[i].PrivAvailability[j].IsGranted = !g.lacks[p.PrivId]
		}
	}
	return body
}

// All privileges that are missing are reported at once, with the object.
func TestMissingPrivileges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	manager := r.Model.Map().Get(*r.Client().ServiceContent.AuthorizationManager).(*simulator.AuthorizationManager)
	r.Model.Map().Put(&granting{manager, map[string]bool{"Datastore.AllocateSpace": true, "Host.Inventory.EditCluster": true, "VirtualMachine.Config.Memory": true}})
	v := r.open(t)
	_, err := v.Inventory(t.Context())
	if diag.ExitCode(err) != diag.ExitUnavailable {
		t.Fatalf("got %v", err)
	}
	// Cleaning takes the lease first, and removes what it can.
	lock, failed := v.(target.Locker).Lock(t.Context(), lease.NewHolder("run-1", 0))
	if failed != nil {
		t.Fatal(failed)
	}
	if _, failed = v.Inventory(t.Context()); failed != nil {
		t.Error(failed)
	}
	if failed = lock.Unlock(); failed != nil {
		t.Error(failed)
	}
	for _, part := range []string{
		vcsim.User, `on datastore "LocalDS_0": Datastore.AllocateSpace`, `on cluster "DC0_C0": Host.Inventory.EditCluster`, "VirtualMachine.Config.Memory",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %q", part, err)
		}
	}
}

// Counters that a vCenter does not have are not requested: one that it does not know fails the whole query.
func TestCountersThatAreMissing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	performance := r.Model.Map().Get(*r.Client().ServiceContent.PerfManager).(*simulator.PerformanceManager)
	performance.PerfCounter = slices.DeleteFunc(slices.Clone(performance.PerfCounter), func(c types.PerfCounterInfo) bool {
		return c.GroupInfo.GetElementDescription().Key == "virtualDisk" || c.NameInfo.GetElementDescription().Key == "ready"
	})
	v := r.open(t)
	vms := r.create(t, v, 1)
	if err := v.(target.VMPower).PowerOnVMs(t.Context(), r.tag, vms); err != nil {
		t.Fatal(err)
	}
	_, samples, err := v.(target.VMMeter).SampleVMs(t.Context(), r.tag)
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[target.VMMetric]bool{}
	for _, one := range samples {
		metrics[one.Metric] = true
	}
	if !metrics[target.VMCPUUsage] || metrics[target.VMReads] || metrics[target.VMCPUSteal] {
		t.Errorf("samples of %v", metrics)
	}
}

// What an administrator does with VMs of the run is reported; what the run itself does, and what concerns others, is not.
func TestPlatformEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.open(t)
	vms := r.create(t, v, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan target.PlatformEvent, 16)
	ended := make(chan error, 1)
	go func() {
		ended <- v.(target.EventWatcher).WatchEvents(ctx, r.tag, func(e target.PlatformEvent) { seen <- e })
	}()
	time.Sleep(200 * time.Millisecond) // events count from then on
	var vm *object.VirtualMachine
	for name, ref := range r.VMs() {
		if strings.HasPrefix(name, "bragg-OLTP") {
			vm = object.NewVirtualMachine(r.Client().Client, ref)
		}
	}
	to := ""
	var host types.ManagedObjectReference
	for id, h := range r.Hosts() {
		if id != vms[0].NodeID {
			to, host = id, h.Self
		}
	}
	if err := v.(target.VMPower).PowerOnVMs(t.Context(), r.tag, vms); err != nil { // not reported
		t.Fatal(err)
	}
	for _, act := range []func() (*object.Task, error){
		func() (*object.Task, error) {
			return vm.Relocate(t.Context(), types.VirtualMachineRelocateSpec{Host: &host}, types.VirtualMachineMovePriorityDefaultPriority)
		},
		func() (*object.Task, error) { return vm.PowerOff(t.Context()) },
		func() (*object.Task, error) {
			return object.NewVirtualMachine(r.Client().Client, r.VMs()[vcsim.Foreign]).PowerOff(t.Context())
		},
	} {
		task, err := act()
		if err == nil {
			err = task.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []target.PlatformEvent{ // the simulator names the old host as the new one, too
		{Kind: target.PlatformMoved, VM: vms[0].Name, From: vms[0].NodeID}, {Kind: target.PlatformStopped, VM: vms[0].Name, NodeID: to},
	}
	for _, w := range want {
		select {
		case got := <-seen:
			if got.Kind != w.Kind || got.VM != w.VM || w.NodeID != "" && got.NodeID != w.NodeID || got.From != w.From || got.Text == "" || time.Since(got.At).Abs() > time.Minute {
				t.Errorf("got %+v, want %+v", got, w)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%+v was not reported", w)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(seen) > 0 {
		t.Errorf("also reported: %+v", <-seen)
	}
}

// Errors of a login name what is wrong and never the password.
func TestLoginErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, c := range map[string]struct {
		change func(c *target.Config)
		code   string
	}{
		"another certificate": {func(c *target.Config) { c.Fingerprint = strings.Repeat("0", 64) }, "vsphere-certificate"},
		"no fingerprint":      {func(c *target.Config) { c.Fingerprint = "" }, "vsphere-certificate"},
		"another user": {func(c *target.Config) {
			c.Credentials = map[string]target.Credential{"platform": {User: "stranger@vsphere.local", Secret: c.Credentials["platform"].Secret}}
		}, "vsphere-login"},
		"no user":         {func(c *target.Config) { c.Credentials = nil }, "vsphere-credential"},
		"nothing there":   {func(c *target.Config) { c.Endpoint = "127.0.0.1:1"; c.TLS = target.TLSUnverified }, "vsphere-unreachable"},
		"another cluster": {func(c *target.Config) { c.Options = map[string]string{"cluster": "C9"} }, "vsphere-inventory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "nothing there" && testing.Short() {
				t.Skip("it is tried for seconds")
			}
			config := r.config
			c.change(&config)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			v, err := vsphere.Provider().Open(ctx, config, target.OpenOptions{})
			if err == nil {
				_ = v.Close()
				t.Fatal("it opened")
			}
			var user *diag.Error
			if ctx.Err() == nil && (!errors.As(err, &user) || user.Code != c.code || user.Hint == "") {
				t.Errorf("got %#v, want %s", err, c.code)
			}
			if name == "another certificate" { // the user compares them
				for _, fingerprint := range []string{r.Fingerprint, config.Fingerprint} {
					if !strings.Contains(strings.ToLower(strings.ReplaceAll(diag.Sentence(err), ":", "")), fingerprint) {
						t.Errorf("%q lacks the fingerprint %s", diag.Sentence(err), fingerprint)
					}
				}
			}
			noSecret(t, "the error", err)
			noSecret(t, "its text", diag.Sentence(err))
		})
	}
}

// Nothing that leaves the target holds the password.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.open(t)
	inventory, err := v.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	noSecret(t, "the inventory", inventory)
	vms := r.create(t, v, 1)
	noSecret(t, "a VM", vms)
	_, err = v.Create(t.Context(), r.tag, specs(t.Context(), v, 1))
	noSecret(t, "an error", err)
	for _, ref := range r.VMs() {
		var vm mo.VirtualMachine
		if err := r.Client().RetrieveOne(t.Context(), ref, []string{"config.extraConfig", "config.annotation", "name"}, &vm); err != nil {
			t.Fatal(err)
		}
		noSecret(t, "the settings of "+vm.Name, vm)
	}
	_ = v.Delete(t.Context(), targettest.NewTag("run-9"), vms)
}

// Two controllers whose target files name different folders of one cluster request it at the same time: one gets it.
func TestLeaseAcrossFolders(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dc := r.Model.Map().Any("Datacenter").(*simulator.Datacenter)
	if _, err := object.NewFolder(r.Client().Client, dc.VmFolder).CreateFolder(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	first := r.open(t)
	r.config.Options = map[string]string{"folder": "other"}
	second := r.open(t)
	for round := range 10 {
		locks, errs := make([]target.Lock, 2), make([]error, 2)
		var wait sync.WaitGroup
		for i, v := range []target.Target{first, second} {
			wait.Go(func() { locks[i], errs[i] = v.(target.Locker).Lock(t.Context(), lease.NewHolder("run", 0)) })
		}
		wait.Wait()
		winner := 0
		if locks[0] == nil {
			winner = 1
		}
		var held *lease.HeldError
		if locks[winner] == nil || locks[1-winner] != nil || !errors.As(errs[1-winner], &held) {
			t.Fatalf("round %d: locks %v, errors %v", round, locks, errs)
		}
		if err := locks[winner].Unlock(); err != nil {
			t.Fatal(err)
		}
		if left := r.left(); len(left) > 0 {
			t.Fatalf("round %d: left %q", round, left)
		}
	}
}
