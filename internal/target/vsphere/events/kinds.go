package events

import (
	"reflect"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
)

// kindOf classifies an event of a vCenter; "" for those that say nothing of the state of hosts, VMs or storage. from is the
// host where a VM was before, or the host that an event of the cluster is about.
func kindOf(one types.BaseEvent) (kind target.PlatformEventKind, from *types.HostEventArgument) {
	switch e := one.(type) {
	case *types.EventEx:
		return extended(e.EventTypeId, e.Severity, e.Arguments), nil
	case *types.ExtendedEvent:
		return extended(e.EventTypeId, "", nil), nil
	case *types.AlarmStatusChangedEvent:
		if e.To == string(types.ManagedEntityStatusRed) || e.To == string(types.ManagedEntityStatusYellow) {
			return target.PlatformAlarm, nil
		}
	case types.BaseVmEvent:
		return ofVM(one)
	case *types.DasHostFailedEvent:
		return target.PlatformNodeDown, &e.FailedHost
	case *types.DasHostIsolatedEvent:
		return target.PlatformNodeDown, &e.IsolatedHost
	case *types.HostConnectionLostEvent, *types.HostDisconnectedEvent, *types.HostRemovedEvent, *types.HostShutdownEvent:
		return target.PlatformNodeDown, nil
	case *types.HostConnectedEvent, *types.ExitMaintenanceModeEvent:
		return target.PlatformNodeUp, nil
	case *types.EnteredMaintenanceModeEvent, *types.HostIsolationIpPingFailedEvent, *types.InsufficientFailoverResourcesEvent,
		*types.DrsEnteredStandbyModeEvent, *types.DasClusterIsolatedEvent, *types.HostSyncFailedEvent:
		return target.PlatformAlarm, nil
	}
	return "", nil
}

// ofVM classifies an event of a VM. Those of HA have types only in vCenters before 5.0.
func ofVM(one types.BaseEvent) (kind target.PlatformEventKind, from *types.HostEventArgument) {
	switch e := one.(type) {
	case *types.VmRestartedOnAlternateHostEvent:
		return target.PlatformRestarted, &e.SourceHost
	case *types.VmDasBeingResetEvent, *types.VmDasBeingResetWithScreenshotEvent:
		return target.PlatformRestarted, nil
	case *types.DrsVmMigratedEvent:
		return target.PlatformMoved, &e.SourceHost
	case *types.VmMigratedEvent:
		return target.PlatformMoved, &e.SourceHost
	case *types.VmRelocatedEvent:
		if e.Host != nil && e.Host.Host == e.SourceHost.Host {
			return target.PlatformAlarm, nil // only its disks moved
		}
		return target.PlatformMoved, &e.SourceHost
	case *types.VmPoweredOffEvent, *types.VmSuspendedEvent, *types.VmResettingEvent, *types.VmGuestOSCrashedEvent:
		return target.PlatformStopped, nil
	case *types.VmFailoverFailed, *types.NotEnoughResourcesToStartVmEvent, *types.VmFailedMigrateEvent, *types.VmRelocateFailedEvent,
		*types.VmDasResetFailedEvent, *types.VmOrphanedEvent:
		return target.PlatformAlarm, nil
	}
	return "", nil
}

// named are events that have an id in place of a type: all of HA since vSphere 5.0. Letters are lower case here: vCenter writes
// com.vmware.vc.HA.DasHostFailedEvent, but com.vmware.vc.ha.VmRestartedByHAEvent.
var named = map[string]target.PlatformEventKind{
	"com.vmware.vc.ha.vmrestartedbyhaevent":                target.PlatformRestarted,
	"com.vmware.vc.ha.vmcpterminatingvm":                   target.PlatformStopped, // its storage was lost
	"com.vmware.vc.ha.dashostfailedevent":                  target.PlatformNodeDown,
	"com.vmware.vc.ha.dashostisolatedevent":                target.PlatformNodeDown,
	"com.vmware.vc.ha.dasfailoverhostfailedevent":          target.PlatformNodeDown,
	"com.vmware.vc.ha.dasfailoverhostisolatedevent":        target.PlatformNodeDown,
	"com.vmware.vc.ha.vmishadisabledrestartevent":          target.PlatformAlarm, // it stays off: HA is off for it
	"com.vmware.vc.ha.clusterfailoveractioninitiatedevent": target.PlatformAlarm,
	"com.vmware.vc.ha.vmcpstoragefailurecleared":           target.PlatformAlarm,
	"com.vmware.vc.sdrs.storagedrsstoragemigrationevent":   target.PlatformAlarm,
}

// troubles are words in the ids of events that warn of something. An event without a severity is judged by them.
var troubles = []string{"fail", "isolated", "partitioned", "unreachable", "inaccessible", "insufficient", "violation", "cannot", "abort"}

// hostDown is the state of a host in its event of a changed state.
const hostDown = string(types.ClusterDasFdmAvailabilityStateHostDown)

// extended classifies an event by its id, and where it is not known by its severity: HA, and everything that ESXi reports of
// storage and network.
func extended(id, severity string, arguments []types.KeyAnyValue) target.PlatformEventKind {
	id = strings.ToLower(id)
	if kind := named[id]; kind != "" {
		return kind
	}
	trouble := slices.ContainsFunc(troubles, func(word string) bool { return strings.Contains(id, word) })
	switch {
	case strings.HasSuffix(id, ".hoststatechangedevent") && slices.ContainsFunc(arguments, func(a types.KeyAnyValue) bool { return a.Value == hostDown }):
		return target.PlatformNodeDown
	case severity == string(types.EventEventSeverityWarning), severity == string(types.EventEventSeverityError),
		strings.HasPrefix(id, "esx.problem."), strings.HasPrefix(id, "esx.clear."),
		severity == "" && trouble && strings.HasPrefix(id, "com.vmware.vc."):
		return target.PlatformAlarm
	}
	return ""
}

// subject returns the objects that an event is about. One that has an id in place of a type may name its object apart.
func subject(one types.BaseEvent) (vm, host *types.ManagedObjectReference) {
	e := one.GetEvent()
	if e.Vm != nil {
		vm = &e.Vm.Vm
	}
	if e.Host != nil {
		host = &e.Host.Host
	}
	var apart types.ManagedObjectReference
	switch x := one.(type) {
	case *types.EventEx:
		apart = types.ManagedObjectReference{Type: x.ObjectType, Value: x.ObjectId}
	case *types.ExtendedEvent:
		apart = x.ManagedObject
	case *types.AlarmStatusChangedEvent:
		apart = x.Entity.Entity
	}
	switch {
	case apart.Type == "VirtualMachine" && vm == nil && apart.Value != "":
		vm = &apart
	case apart.Type == "HostSystem" && host == nil && apart.Value != "":
		host = &apart
	}
	return vm, host
}

func nameOf(one types.BaseEvent) string {
	t := reflect.TypeOf(one)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}
