package events

import (
	"context"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
)

type source struct{}

func (source) VMName(_ context.Context, vm types.ManagedObjectReference) string {
	return map[string]string{"vm-1": "OLTP-0001"}[vm.Value]
}

func (source) Host(_ context.Context, h types.ManagedObjectReference) bool {
	return h.Value == "host-1" || h.Value == "host-2"
}

func host(id string) types.HostEventArgument {
	return types.HostEventArgument{Host: types.ManagedObjectReference{Type: "HostSystem", Value: id}}
}

func TestKinds(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	about := func(vm, on, user string) types.Event {
		e := types.Event{CreatedTime: created, UserName: user, FullFormattedMessage: "it\nhappened"}
		if vm != "" {
			e.Vm = &types.VmEventArgument{Vm: types.ManagedObjectReference{Type: "VirtualMachine", Value: vm}}
		}
		if on != "" {
			h := host(on)
			e.Host = &h
		}
		return e
	}
	vmEvent := func(vm, on, user string) types.VmEvent { return types.VmEvent{Event: about(vm, on, user)} }
	hostEvent := func(on string) types.HostEvent { return types.HostEvent{Event: about("", on, "")} }
	restarted := &types.VmRestartedOnAlternateHostEvent{SourceHost: host("host-1")}
	restarted.Event = about("vm-1", "host-2", "")
	for name, c := range map[string]struct {
		event types.BaseEvent
		want  target.PlatformEvent // without a kind: not reported
	}{
		"HA": {restarted, target.PlatformEvent{Kind: target.PlatformRestarted, VM: "OLTP-0001", NodeID: "host-2", From: "host-1"}},
		"DRS": {&types.DrsVmMigratedEvent{VmMigratedEvent: types.VmMigratedEvent{VmEvent: vmEvent("vm-1", "host-2", ""), SourceHost: host("host-1")}},
			target.PlatformEvent{Kind: target.PlatformMoved, VM: "OLTP-0001", NodeID: "host-2", From: "host-1"}},
		"a VM of others":  {&types.VmPoweredOffEvent{VmEvent: vmEvent("vm-9", "host-2", "")}, target.PlatformEvent{}},
		"the run itself":  {&types.VmPoweredOffEvent{VmEvent: vmEvent("vm-1", "host-2", "bragg")}, target.PlatformEvent{}},
		"a user":          {&types.VmPoweredOffEvent{VmEvent: vmEvent("vm-1", "host-2", "root")}, target.PlatformEvent{Kind: target.PlatformStopped, VM: "OLTP-0001", NodeID: "host-2"}},
		"host lost":       {&types.HostConnectionLostEvent{HostEvent: hostEvent("host-1")}, target.PlatformEvent{Kind: target.PlatformNodeDown, NodeID: "host-1"}},
		"host of others":  {&types.HostConnectionLostEvent{HostEvent: hostEvent("host-9")}, target.PlatformEvent{}},
		"host back":       {&types.HostConnectedEvent{HostEvent: hostEvent("host-1")}, target.PlatformEvent{Kind: target.PlatformNodeUp, NodeID: "host-1"}},
		"HA sees it lost": {&types.DasHostFailedEvent{ClusterEvent: types.ClusterEvent{Event: about("", "", "")}, FailedHost: host("host-2")}, target.PlatformEvent{Kind: target.PlatformNodeDown, NodeID: "host-2"}},
		"storage": {&types.EventEx{Event: about("", "host-1", ""), EventTypeId: "esx.problem.storage.apd.start", Severity: "warning"},
			target.PlatformEvent{Kind: target.PlatformAlarm, NodeID: "host-1"}},
		"alarm":       {&types.AlarmStatusChangedEvent{AlarmEvent: types.AlarmEvent{Event: about("", "host-1", "")}, To: "red"}, target.PlatformEvent{Kind: target.PlatformAlarm, NodeID: "host-1"}},
		"alarm ended": {&types.AlarmStatusChangedEvent{AlarmEvent: types.AlarmEvent{Event: about("", "host-1", "")}, To: "green"}, target.PlatformEvent{}},
		"a login":     {&types.UserLoginSessionEvent{}, target.PlatformEvent{}},
		"HA since 5.0": {&types.EventEx{Event: about("vm-1", "host-2", ""), EventTypeId: "com.vmware.vc.ha.VmRestartedByHAEvent", Severity: "warning"},
			target.PlatformEvent{Kind: target.PlatformRestarted, VM: "OLTP-0001", NodeID: "host-2"}},
		"HA, its object apart": {&types.EventEx{Event: about("", "", ""), EventTypeId: "com.vmware.vc.ha.VmRestartedByHAEvent", ObjectType: "VirtualMachine", ObjectId: "vm-1"},
			target.PlatformEvent{Kind: target.PlatformRestarted, VM: "OLTP-0001"}},
		"HA of others": {&types.EventEx{Event: about("vm-9", "host-2", ""), EventTypeId: "com.vmware.vc.ha.VmRestartedByHAEvent"}, target.PlatformEvent{}},
		"a failed host": {&types.ExtendedEvent{GeneralEvent: types.GeneralEvent{Event: about("", "", "")}, EventTypeId: "com.vmware.vc.HA.DasHostFailedEvent",
			ManagedObject: types.ManagedObjectReference{Type: "HostSystem", Value: "host-1"}}, target.PlatformEvent{Kind: target.PlatformNodeDown, NodeID: "host-1"}},
		"a host that is down": {&types.EventEx{Event: about("", "host-1", ""), EventTypeId: "com.vmware.vc.HA.HostStateChangedEvent", Severity: "warning",
			Arguments: []types.KeyAnyValue{{Key: "newState", Value: "hostDown"}}}, target.PlatformEvent{Kind: target.PlatformNodeDown, NodeID: "host-1"}},
		"another state of HA": {&types.EventEx{Event: about("", "host-1", ""), EventTypeId: "com.vmware.vc.HA.HostStateChangedEvent", Severity: "info",
			Arguments: []types.KeyAnyValue{{Key: "newState", Value: "connectedToMaster"}}}, target.PlatformEvent{}},
		"HA is off for it": {&types.ExtendedEvent{GeneralEvent: types.GeneralEvent{Event: about("vm-1", "host-1", "")}, EventTypeId: "com.vmware.vc.HA.VMIsHADisabledRestartEvent"},
			target.PlatformEvent{Kind: target.PlatformAlarm, VM: "OLTP-0001", NodeID: "host-1"}},
		"HA ends it": {&types.ExtendedEvent{GeneralEvent: types.GeneralEvent{Event: about("vm-1", "host-1", "")}, EventTypeId: "com.vmware.vc.HA.VmcpTerminatingVm"},
			target.PlatformEvent{Kind: target.PlatformStopped, VM: "OLTP-0001", NodeID: "host-1"}},
		"HA is well": {&types.ExtendedEvent{GeneralEvent: types.GeneralEvent{Event: about("", "host-1", "")}, EventTypeId: "com.vmware.vc.HA.AllHostAddrsPingable"}, target.PlatformEvent{}},
		"a partition": {&types.ExtendedEvent{GeneralEvent: types.GeneralEvent{Event: about("", "host-1", "")}, EventTypeId: "com.vmware.vc.HA.HostPartitionedFromMasterEvent"},
			target.PlatformEvent{Kind: target.PlatformAlarm, NodeID: "host-1"}},
		"HA resets it": {&types.VmDasBeingResetWithScreenshotEvent{VmDasBeingResetEvent: types.VmDasBeingResetEvent{VmEvent: vmEvent("vm-1", "host-1", "")}},
			target.PlatformEvent{Kind: target.PlatformRestarted, VM: "OLTP-0001", NodeID: "host-1"}},
		"a crash":        {&types.VmGuestOSCrashedEvent{VmEvent: vmEvent("vm-1", "host-1", "")}, target.PlatformEvent{Kind: target.PlatformStopped, VM: "OLTP-0001", NodeID: "host-1"}},
		"vMotion begins": {&types.VmBeingHotMigratedEvent{VmEvent: vmEvent("vm-1", "host-1", "")}, target.PlatformEvent{}}, // its end is reported
		"Storage vMotion": {&types.VmRelocatedEvent{VmRelocateSpecEvent: types.VmRelocateSpecEvent{VmEvent: vmEvent("vm-1", "host-1", "root")}, SourceHost: host("host-1")},
			target.PlatformEvent{Kind: target.PlatformAlarm, VM: "OLTP-0001", NodeID: "host-1"}},
		"Storage vMotion by the run": {&types.VmRelocatedEvent{VmRelocateSpecEvent: types.VmRelocateSpecEvent{VmEvent: vmEvent("vm-1", "host-1", "bragg")}, SourceHost: host("host-1")},
			target.PlatformEvent{}},
		"vMotion of host and disks": {&types.VmRelocatedEvent{VmRelocateSpecEvent: types.VmRelocateSpecEvent{VmEvent: vmEvent("vm-1", "host-2", "")}, SourceHost: host("host-1")},
			target.PlatformEvent{Kind: target.PlatformMoved, VM: "OLTP-0001", NodeID: "host-2", From: "host-1"}},
		"Storage DRS": {&types.EventEx{Event: about("vm-1", "host-1", ""), EventTypeId: "com.vmware.vc.sdrs.StorageDrsStorageMigrationEvent", Severity: "info"},
			target.PlatformEvent{Kind: target.PlatformAlarm, VM: "OLTP-0001", NodeID: "host-1"}},
		"no room": {&types.NotEnoughResourcesToStartVmEvent{VmEvent: vmEvent("vm-1", "host-1", "")}, target.PlatformEvent{Kind: target.PlatformAlarm, VM: "OLTP-0001", NodeID: "host-1"}},
		"alarm of a VM": {&types.AlarmStatusChangedEvent{AlarmEvent: types.AlarmEvent{Event: about("", "", "")}, To: "yellow",
			Entity: types.ManagedEntityEventArgument{Entity: types.ManagedObjectReference{Type: "VirtualMachine", Value: "vm-1"}}},
			target.PlatformEvent{Kind: target.PlatformAlarm, VM: "OLTP-0001"}},
		"alarm of a VM of others": {&types.AlarmStatusChangedEvent{AlarmEvent: types.AlarmEvent{Event: about("", "", "")}, To: "red",
			Entity: types.ManagedEntityEventArgument{Entity: types.ManagedObjectReference{Type: "VirtualMachine", Value: "vm-9"}}}, target.PlatformEvent{}},
	} {
		w := &watcher{source: source{}, own: func(user string) bool { return user == "bragg" }, offset: time.Hour}
		got, ok := w.convert(t.Context(), c.event)
		if ok != (c.want.Kind != "") {
			t.Errorf("%s: reported %t: %+v", name, ok, got)
			continue
		}
		if !ok {
			continue
		}
		c.want.At, c.want.Text = created.Add(time.Hour), "it happened"
		if got.At != c.want.At || got.Kind != c.want.Kind || got.VM != c.want.VM || got.NodeID != c.want.NodeID || got.From != c.want.From || got.Text == "" {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func lost(key int32, at time.Time) types.BaseEvent {
	e := &types.HostConnectionLostEvent{HostEvent: types.HostEvent{Event: types.Event{Key: key, CreatedTime: at}}}
	h := host("host-1")
	e.Host = &h
	return e
}

// Each event is reported once, also in a flood after which old keys are forgotten.
func TestOnceInAFlood(t *testing.T) {
	reported := map[time.Time]int{}
	w := &watcher{source: source{}, own: func(string) bool { return false }, seen: map[int32]bool{}, see: func(p target.PlatformEvent) { reported[p.At]++ }}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var last []types.BaseEvent
	for poll := range 3 {
		flood := last // a query overlaps the one before
		for i := range seenMax/2 + 1 {
			key := int32(poll*seenMax + i)
			flood = append(flood, lost(key, now.Add(time.Duration(key)*time.Millisecond)))
		}
		w.take(t.Context(), flood, now.Add(time.Hour))
		last = flood[len(flood)-100:]
	}
	for at, n := range reported {
		if n != 1 {
			t.Fatalf("the event of %s was reported %d times", at, n)
		}
	}
	if want := 3 * (seenMax/2 + 1); len(reported) != want || len(w.seen) > 2*seenMax {
		t.Errorf("reported %d of %d events, know %d", len(reported), want, len(w.seen))
	}
}

// The clock of a host that is hours ahead does not hide what happens meanwhile.
func TestClockAhead(t *testing.T) {
	w := &watcher{source: source{}, own: func(string) bool { return false }, seen: map[int32]bool{}, see: func(target.PlatformEvent) {}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w.take(t.Context(), []types.BaseEvent{lost(1, now.Add(-time.Second)), lost(2, now.Add(5*time.Hour))}, now)
	if w.since.After(now) {
		t.Errorf("the next query begins at %s, and it is %s", w.since, now)
	}
}

// A VM has the name of the run in the texts of the vCenter.
func TestNamesInTexts(t *testing.T) {
	e := &types.VmPoweredOffEvent{VmEvent: types.VmEvent{Event: types.Event{
		Vm:                   &types.VmEventArgument{EntityEventArgument: types.EntityEventArgument{Name: "bragg-OLTP-0001-81-54"}},
		FullFormattedMessage: "bragg-OLTP-0001-81-54 on host-1 is powered off",
	}}}
	for vm, want := range map[string]string{"OLTP-0001": "OLTP-0001 on host-1 is powered off", "": "bragg-OLTP-0001-81-54 on host-1 is powered off"} {
		if got := textOf(e, vm); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := textOf(&types.VmPoweredOffEvent{}, "OLTP-0001"); got != "VmPoweredOffEvent" {
		t.Errorf("without a text: %q", got)
	}
}
