package nutanix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// life makes VMs, works with them, clones one, and deletes all.
func life(ctx context.Context, l target.Target, tag target.Tag, specs, clones []target.VMSpec) error {
	t := l.(interface {
		target.VMPower
		target.Snapshotter
		target.Migrator
		target.Cloner
	})
	vms, err := l.Create(ctx, tag, specs)
	if err != nil {
		return err
	}
	if err := t.PowerOnVMs(ctx, tag, vms); err != nil {
		return err
	}
	if err := t.SnapshotVMs(ctx, tag, vms, "before"); err != nil {
		return err
	}
	if err := t.MigrateVMs(ctx, tag, vms[:1], vms[1].NodeID); err != nil {
		return err
	}
	made, err := t.CloneVM(ctx, tag, vms[0], clones, false)
	if err != nil {
		return err
	}
	if err := t.PowerOffVMs(ctx, tag, vms); err != nil {
		return err
	}
	owned, err := l.Owned(ctx, tag)
	if err != nil {
		return err
	}
	if want := len(vms) + len(made); len(owned) != want {
		return fmt.Errorf("%d VMs are there, want %d: %+v", len(owned), want, owned)
	}
	return l.Delete(ctx, tag, owned)
}

// Whatever Prism does to single requests and tasks, everything is made once and removed.
func TestFaults(t *testing.T) {
	r := newRig(t, prism.Options{})
	const vms, any = "/api/vmm/*/ahv/config/vms", "/api/vmm/*/ahv/config/vms/*"
	for name, rules := range map[string][]faults.Rule{
		"too many requests":   {{Request: "* " + vms, Status: 429, RetryAfter: time.Second, Times: 4}},
		"unavailable":         {{Request: "* " + any, Status: 503, Times: 3}, {Request: "GET /api/prism/*/config/tasks/*", Status: 503, Times: 3}},
		"gateway":             {{Request: "POST " + any + "/$actions/*", Status: 502, Times: 2}, {Request: "DELETE " + any, Status: 504, Times: 2}},
		"create unanswered":   {{Request: "POST " + vms, Drop: true, Times: 2}},
		"clone unanswered":    {{Request: "POST " + any + "/$actions/clone", Drop: true, Times: 1}},
		"power unanswered":    {{Request: "POST " + any + "/$actions/power-*", Drop: true, Times: 2}},
		"delete unanswered":   {{Request: "DELETE " + any, Drop: true, Times: 2}},
		"update unanswered":   {{Request: "PUT " + any, Drop: true, Times: 2}},
		"snapshot unanswered": {{Request: "POST /api/dataprotection/*/config/recovery-points", Drop: true, Times: 2}},
		"conflicts":           {{Request: "POST " + any + "/$actions/*", Status: 412, Times: 3}, {Request: "PUT " + any, Status: 412, Times: 2}},
		"sessions":            {{Request: "GET " + vms, ExpireSessions: true, Times: 3}},
		"create lost":         {{Task: "VmCreate", Lose: true, Times: 2}},
		"clone lost":          {{Task: "VmClone", Lose: true, Times: 1}},
		"power lost":          {{Task: "VmPower*", Lose: true, Times: 3}},
		"delete lost":         {{Task: "VmDelete", Lose: true, Times: 2}},
		"migration lost":      {{Task: "VmMigrate", Lose: true, Times: 1}},
		"snapshot lost":       {{Task: "CreateRecoveryPoint", Lose: true, Times: 1}},
		"power late":          {{Task: "VmPowerOn", FailAfter: true, Fail: "timed out", Times: 1}},
		"slow":                {{Task: "Vm*", After: 40 * time.Millisecond}, {Request: "GET /api/prism/*/config/tasks/*", Delay: 5 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			r.Faults.Clear()
			l := r.open(t, nil)
			defer l.Close()
			tag := targettest.NewTag("run-1")
			all := specs(t, l, "OLTP", 2)
			clones := specs(t, l, "CLONE", 2)
			r.Faults.Add(rules...)
			if err := life(t.Context(), l, tag, all, clones); err != nil {
				t.Error(err)
			}
			r.Faults.Clear()
			if left := r.leftovers(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// What fails for good is an error in Prism's words, without secrets, and leaves nothing.
func TestFailures(t *testing.T) {
	r := newRig(t, prism.Options{})
	l := r.open(t, nil)
	defer l.Close()
	tag := targettest.NewTag("run-1")
	for name, rule := range map[string]faults.Rule{
		"no space left":    {Task: "VmCreate", Name: "*OLTP-0002", After: 100 * time.Millisecond, Fail: "no space left for " + password},
		"503":              {Request: "POST /api/vmm/*/ahv/config/vms", Body: "OLTP-0002", Status: 503},
		"privilege":        {Request: "POST /api/vmm/*/ahv/config/vms", Body: "OLTP-0002", Status: 403},
		"InternalServer":   {Request: "POST /api/vmm/*/ahv/config/vms", Body: "OLTP-0002", Status: 500},
		"Internal Server ": {Request: "GET /api/vmm/*/ahv/config/vms", Skip: 2, Times: 1, Status: 500},
	} {
		all := specs(t, l, "OLTP", 3)
		r.Faults.Add(rule)
		vms, err := l.Create(t.Context(), tag, all)
		r.Faults.Clear()
		text := diag.Sentence(err)
		if err == nil && !strings.HasPrefix(name, "Internal Server ") {
			t.Errorf("%s: made %d VMs", name, len(vms))
		}
		if strings.Contains(text, password) || strings.Contains(text, "Basic ") {
			t.Errorf("%s: a secret is in %q", name, text)
		}
		if name != "InternalServer" && err != nil && !strings.Contains(text, strings.TrimSpace(name)) {
			t.Errorf("%s: %s", name, text)
		}
		if err == nil {
			err = l.Delete(t.Context(), tag, vms)
		}
		if left := r.leftovers(); len(left) > 0 {
			t.Errorf("%s: left %q, %v", name, left, err)
		}
	}
}

// VMs of other owners stay, even with names as Bragg gives them.
func TestForeignVMs(t *testing.T) {
	r := newRig(t, prism.Options{})
	l := r.open(t, nil)
	defer l.Close()
	tag := targettest.NewTag("run-1")
	foreign := []string{"OLTP-0001", "bragg-", "bragg-OLTP-0001", prismName(tag.Mark(), "OLTP-0001"), prismName(targettest.NewTag("run-1").Mark(), "OLTP-0001")}
	for _, name := range foreign {
		r.plant(t, name)
	}
	others, err := l.(target.OtherLister).Others(t.Context(), tag)
	if err != nil || len(others) != len(foreign) {
		t.Errorf("others are %+v, %v", others, err)
	}
	if owned, err := l.Owned(t.Context(), tag); err != nil || len(owned) > 0 {
		t.Errorf("foreign VMs are ours: %+v, %v", owned, err)
	}
	if err := life(t.Context(), l, tag, specs(t, l, "OLTP", 2), specs(t, l, "CLONE", 1)); err != nil {
		t.Error(err)
	}
	var left []string
	r.State.Read(func(d *state.Data) {
		for _, vm := range d.VMs {
			if vm.Power != state.On || vm.Description != accounting {
				t.Errorf("VM %s changed: %+v", vm.Name, vm)
			}
			left = append(left, vm.Name)
		}
	})
	slices.Sort(left)
	slices.Sort(foreign)
	if !slices.Equal(left, foreign) {
		t.Errorf("left are %q, want %q", left, foreign)
	}
}

// A user's copy of a VM has its description and its name with an addition, and belongs to the user.
func TestCopyOfUser(t *testing.T) {
	r := newRig(t, prism.Options{})
	l := r.open(t, nil)
	defer l.Close()
	tag := targettest.NewTag("run-1")
	vms, err := l.Create(t.Context(), tag, specs(t, l, "OLTP", 1))
	if err != nil {
		t.Fatal(err)
	}
	original := prismName(tag.Mark(), vms[0].Name)
	for _, add := range []string{"-clone1", "_1"} {
		r.plant(t, original+add)
	}
	r.State.Read(func(d *state.Data) {
		for _, vm := range d.VMs {
			vm.Description = d.VM(vms[0].ID).Description
		}
	})
	owned, err := l.Owned(t.Context(), tag)
	if err != nil || len(owned) != 1 || owned[0].ID != vms[0].ID {
		t.Errorf("owned: %+v, %v", owned, err)
	}
	if err := l.Delete(t.Context(), tag, owned); err != nil {
		t.Fatal(err)
	}
	if left := r.leftovers(); len(left) != 2 {
		t.Errorf("left: %q, want the copies", left)
	}
}

// A controller that died between the clone and its record leaves a VM that is found by its name, and removed.
func TestUnfinishedClone(t *testing.T) {
	r := newRig(t, prism.Options{})
	l := r.open(t, nil)
	defer l.Close()
	tag := targettest.NewTag("run-1")
	source, err := l.Create(t.Context(), tag, specs(t, l, "OLTP", 1))
	if err != nil {
		t.Fatal(err)
	}
	r.Faults.Add(faults.Rule{Request: "PUT /api/vmm/*/ahv/config/vms/*", Status: 500}, faults.Rule{Request: "DELETE /api/vmm/*/ahv/config/vms/*", Status: 500})
	if _, err := l.(target.Cloner).CloneVM(t.Context(), tag, source[0], specs(t, l, "CLONE", 1), false); err == nil {
		t.Fatal("a clone without a record was made")
	}
	r.Faults.Clear()
	again := r.open(t, nil)
	defer again.Close()
	owned, err := again.Owned(t.Context(), tag)
	if err != nil || len(owned) != 2 {
		t.Fatalf("found %+v, %v", owned, err)
	}
	if other, err := again.Owned(t.Context(), targettest.NewTag("run-1")); err != nil || len(other) > 0 {
		t.Errorf("another run owns %+v, %v", other, err)
	}
	if err := again.Delete(t.Context(), tag, owned); err != nil {
		t.Fatal(err)
	}
	if left := r.leftovers(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A VM that HA restarts on another host is found there, its agent answers, and the platform's events say so.
func TestFailover(t *testing.T) {
	r := newRig(t, prism.Options{State: state.Options{HADelay: 300 * time.Millisecond}})
	l := r.open(t, r.authority)
	defer l.Close()
	tag := targettest.NewTag("run-1")
	vms, err := l.Create(t.Context(), tag, specs(t, l, "OLTP", 2))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.(target.VMPower).PowerOnVMs(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
	boot := func(vm target.VM) string {
		t.Helper()
		conn, err := l.(target.AgentDialer).DialAgent(t.Context(), vm)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		who, err := greet(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		return who
	}
	before := boot(vms[0])
	events := make(chan target.PlatformEvent, 100)
	ctx, stop := context.WithCancel(t.Context())
	watching := make(chan error, 1)
	looks := func() (n int) {
		for _, request := range r.Gate.Requests() {
			if strings.HasPrefix(request, "GET ") && strings.HasSuffix(request, "/hosts") {
				n++
			}
		}
		return n
	}
	asked := looks()
	go func() {
		watching <- l.(target.EventWatcher).WatchEvents(ctx, tag, func(e target.PlatformEvent) { events <- e })
	}()
	for looks() < asked+2 { // then the first look is over
		time.Sleep(5 * time.Millisecond)
	}
	if err := r.CutHost(vms[0].NodeID); err != nil {
		t.Fatal(err)
	}
	seen := map[target.PlatformEventKind]target.PlatformEvent{}
	for seen[target.PlatformRestarted].VM == "" || seen[target.PlatformNodeDown].NodeID == "" {
		select {
		case e := <-events:
			seen[e.Kind] = e
		case <-time.After(30 * time.Second):
			t.Fatalf("saw only %+v", seen)
		}
	}
	restarted := seen[target.PlatformRestarted]
	if restarted.VM != vms[0].Name || restarted.From != vms[0].NodeID || restarted.NodeID == restarted.From || restarted.At.IsZero() {
		t.Errorf("event %+v", restarted)
	}
	owned, err := l.Owned(t.Context(), tag)
	if err != nil || owned[0].NodeID != restarted.NodeID || owned[0].Power != target.PowerOn {
		t.Errorf("owned are %+v, %v", owned, err)
	}
	if boot(owned[0]) == before {
		t.Error("the agent did not start again")
	}
	if err := r.RestoreHost(vms[0].NodeID); err != nil {
		t.Fatal(err)
	}
	if err := r.State.MoveVM(vms[1].ID, hostOf(r, vms[0].NodeID)); err != nil { // by load balancing
		t.Fatal(err)
	}
	for seen[target.PlatformMoved].VM == "" {
		select {
		case e := <-events:
			seen[e.Kind] = e
		case <-time.After(30 * time.Second):
			t.Fatalf("saw only %+v", seen)
		}
	}
	stop()
	if err := <-watching; err != nil {
		t.Error(err)
	}
	if err := l.Delete(t.Context(), tag, vms); err != nil {
		t.Fatal(err)
	}
}

// hostOf is the id of a host that the target calls so.
func hostOf(r *rig, node string) (id string) {
	r.State.Read(func(d *state.Data) {
		for _, h := range d.Hosts {
			if h.Name == node || h.ID == node {
				id = h.ID
			}
		}
	})
	return id
}

// A power cut needs permission for the CVM too, and plans know it beforehand.
func TestCVMs(t *testing.T) {
	r := newRig(t, prism.Options{})
	r.withBMCs(t)
	r.config.Allow.CVMs = false
	l := r.open(t, nil)
	defer l.Close()
	inventory, err := l.Inventory(t.Context())
	if err != nil || inventory.Nodes[0].CVM == "" {
		t.Fatalf("%+v, %v", inventory.Nodes, err)
	}
	node := inventory.Nodes[0].ID
	for _, cut := range []func(context.Context, string) error{l.(target.NodePower).PowerOffNode, l.(target.NodePower).ShutdownNode} {
		if err := cut(t.Context(), node); diag.ExitCode(err) != diag.ExitRefused || !strings.Contains(diag.Sentence(err), "cvms: true") {
			t.Errorf("got %v", err)
		}
	}
	seen, err := l.(target.PowerCutForeseer).Foresee(t.Context(), node)
	if err != nil || len(seen.Foreign) != 1 || !strings.Contains(seen.Foreign[0], "CVM") {
		t.Errorf("foreseen %+v, %v", seen, err)
	}
}

// A lease that is written over meanwhile is lost, and one whose answer was lost is held once.
func TestLeaseFaults(t *testing.T) {
	r := newRig(t, prism.Options{})
	first, second := r.open(t, nil), r.open(t, nil)
	defer first.Close()
	defer second.Close()
	r.Faults.Add(faults.Rule{Request: "POST /api/prism/*/config/categories", Drop: true, Times: 1})
	lock, err := first.(target.Locker).Lock(t.Context(), lease.NewHolder("run-1", 0))
	if err != nil {
		t.Fatal(err)
	}
	var held *lease.HeldError
	if _, err := second.(target.Locker).Lock(t.Context(), lease.NewHolder("run-2", 0)); !errors.As(err, &held) || held.By.Run != "run-1" {
		t.Errorf("got %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if left := r.leftovers(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
