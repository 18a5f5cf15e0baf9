package nutanix

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// category makes a category.
func (r *rig) category(t *testing.T, key, value string) string {
	t.Helper()
	c, err := r.State.CreateCategory(state.Category{Key: key, Value: value})
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// policy makes an affinity policy.
func (r *rig) policy(t *testing.T, p state.Policy) (id string) {
	t.Helper()
	task, id, err := r.State.CreatePolicy(p)
	if err == nil {
		err = r.State.Await(task)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// VMs have the categories of the target file. A policy that refuses the node of a scenario is named in the error, and one that moves a VM in
// the event.
func TestAffinity(t *testing.T) {
	r := newRigOf(t, prism.Options{}, nil)
	r.config.Options = map[string]string{"categories": "AppTier:Db, Site:Lab"}
	missing := r.open(t, nil)
	defer missing.Close()
	if _, err := missing.Inventory(t.Context()); err == nil || !strings.Contains(diag.Sentence(err), `find category "AppTier:Db"`) || diag.ExitCode(err) != diag.ExitUnavailable {
		t.Errorf("without the category: %v", err)
	}
	tier := r.category(t, "AppTier", "Db")
	r.category(t, "Site", "Lab")
	rack := r.category(t, "Rack", "9")
	l := r.open(t, nil)
	defer l.Close()
	tag := targettest.NewTag("run-1")
	all := specs(t, l, "OLTP", 3)
	vms, err := l.Create(t.Context(), tag, all)
	if err != nil {
		t.Fatal(err)
	}
	clones := specs(t, l, "CLONE", 1)
	made, err := l.(target.Cloner).CloneVM(t.Context(), tag, vms[0], clones, false)
	if err != nil {
		t.Fatal(err)
	}
	r.State.Read(func(d *state.Data) {
		for _, vm := range slices.Concat(vms, made) {
			if got := d.VM(vm.ID).Categories; len(got) != 2 || got[0] != tier {
				t.Errorf("categories of %s are %q", vm.Name, got)
			}
		}
	})
	power := l.(target.VMPower)
	if err := power.PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	events := r.watch(t, l, tag)
	hosts := r.hostIDs()
	task, err := r.State.CategorizeHost(hosts[2], []string{rack}, true)
	if err == nil {
		err = r.State.Await(task)
	}
	if err != nil {
		t.Fatal(err)
	}
	policy := r.policy(t, state.Policy{Name: "databases", VMCategories: []string{tier}, HostCategories: []string{rack}})
	const does = `policy "databases" keeps it on hosts of its categories`
	for range 2 { // both VMs of other hosts move
		e := <-events
		if e.Kind != target.PlatformMoved || e.NodeID != vms[2].NodeID || !strings.Contains(e.Text, "VM "+e.VM+" moved") || !strings.Contains(e.Text, does) {
			t.Errorf("event %+v", e)
		}
	}
	inventory, err := l.Inventory(t.Context())
	if err != nil || !slices.ContainsFunc(inventory.Facts, func(f target.Fact) bool { return f.Name == "affinity of VMs" && strings.Contains(f.Value, "databases") }) {
		t.Errorf("facts %+v, %v", inventory.Facts, err)
	}
	for what, err := range map[string]error{
		"power on": power.PowerOnVMs(t.Context(), tag, made), "migrate": l.(target.Migrator).MigrateVMs(t.Context(), tag, vms[:1], vms[1].NodeID),
	} {
		if text := diag.Sentence(err); !strings.Contains(text, does) {
			t.Errorf("%s: %q", what, text)
		}
	}
	if task, err = r.State.DeletePolicy(policy, -1); err == nil {
		err = r.State.Await(task)
	}
	if err == nil {
		err = power.PowerOnVMs(t.Context(), tag, made)
	}
	owned, err2 := l.Owned(t.Context(), tag)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	r.policy(t, state.Policy{Name: "spread", VMCategories: []string{tier}, AntiAffinity: true})
	if e := <-events; e.Kind != target.PlatformMoved || !strings.Contains(e.Text, `policy "spread" keeps it apart from other VMs`) {
		t.Errorf("event %+v", e)
	}
	if err := l.Delete(t.Context(), tag, owned); err != nil {
		t.Fatal(err)
	}
	if _, err := readCategories("AppTier"); err == nil {
		t.Error("a category without a value is accepted")
	}
}

// hostIDs are in the order of names.
func (r *rig) hostIDs() (ids []string) {
	r.State.Read(func(d *state.Data) {
		for _, h := range d.Hosts {
			ids = append(ids, h.ID)
		}
	})
	return ids
}

// watch returns moves of VMs from now on.
func (r *rig) watch(t *testing.T, l target.Target, tag target.Tag) <-chan target.PlatformEvent {
	t.Helper()
	events := make(chan target.PlatformEvent, 100)
	ctx, stop := context.WithCancel(t.Context())
	looks := func() (n int) {
		for _, request := range r.Gate.Requests() {
			if strings.HasPrefix(request, "GET ") && strings.HasSuffix(request, "/hosts") {
				n++
			}
		}
		return n
	}
	before := looks()
	done := make(chan error, 1)
	go func() {
		done <- l.(target.EventWatcher).WatchEvents(ctx, tag, func(e target.PlatformEvent) {
			if e.Kind == target.PlatformMoved {
				events <- e
			}
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for looks() < before+2 { // then the first look is over
		time.Sleep(5 * time.Millisecond)
	}
	return events
}
