package events

import (
	"reflect"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
)

// kindOf classifies an event of a vCenter; "" for those that say nothing of the state of hosts, VMs or storage. from is the
// host where a VM was before, or the host that an event of the cluster is about.
func kindOf(one types.BaseEvent) (kind target.PlatformEventKind, from *types.HostEventArgument) {
	switch e := one.(type) {
	case *types.VmRestartedOnAlternateHostEvent:
		return target.PlatformRestarted, &e.SourceHost
	case *types.VmDasBeingResetEvent, *types.VmDasBeingResetWithScreenshotEvent:
		return target.PlatformRestarted, nil
	case *types.DrsVmMigratedEvent:
		return target.PlatformMoved, &e.SourceHost
	case *types.VmMigratedEvent:
		return target.PlatformMoved, &e.SourceHost
	case *types.VmPoweredOffEvent, *types.VmSuspendedEvent:
		return target.PlatformStopped, nil
	case *types.HostConnectionLostEvent, *types.HostDisconnectedEvent, *types.HostRemovedEvent, *types.HostShutdownEvent:
		return target.PlatformNodeDown, nil
	case *types.DasHostFailedEvent:
		return target.PlatformNodeDown, &e.FailedHost
	case *types.DasHostIsolatedEvent:
		return target.PlatformNodeDown, &e.IsolatedHost
	case *types.HostConnectedEvent, *types.ExitMaintenanceModeEvent:
		return target.PlatformNodeUp, nil
	case *types.EnteredMaintenanceModeEvent, *types.VmFailoverFailed, *types.NotEnoughResourcesToStartVmEvent, *types.VmFailedMigrateEvent,
		*types.HostIsolationIpPingFailedEvent, *types.InsufficientFailoverResourcesEvent, *types.DrsEnteredStandbyModeEvent:
		return target.PlatformAlarm, nil
	case *types.AlarmStatusChangedEvent:
		if e.To == string(types.ManagedEntityStatusRed) || e.To == string(types.ManagedEntityStatusYellow) {
			return target.PlatformAlarm, nil
		}
	case *types.EventEx:
		return extended(e), nil
	}
	return "", nil
}

// extended classifies events that have no type of their own, by their name and severity: HA of vSphere 5 and later, and
// everything that ESXi reports of storage and network.
func extended(e *types.EventEx) target.PlatformEventKind {
	id := strings.ToLower(e.EventTypeId)
	switch {
	case strings.Contains(id, "failoverhostfailed"), strings.Contains(id, "dashostfailed"), strings.HasSuffix(id, "hoststatechangedevent") && e.Severity == "error":
		return target.PlatformNodeDown
	case e.Severity == string(types.EventEventSeverityWarning), e.Severity == string(types.EventEventSeverityError),
		strings.HasPrefix(id, "esx.problem."), strings.HasPrefix(id, "esx.clear."):
		return target.PlatformAlarm
	}
	return ""
}

func nameOf(one types.BaseEvent) string {
	t := reflect.TypeOf(one)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}
