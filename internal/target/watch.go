package target

import (
	"context"
	"time"
)

// PlatformEventKind is what a platform reports.
type PlatformEventKind string

const (
	PlatformRestarted PlatformEventKind = "vm-restarted" // it started VM on NodeID after a failure of its node (HA)
	PlatformMoved     PlatformEventKind = "vm-moved"     // it moved VM to NodeID: by load balancing (DRS, ADS), or by an administrator
	PlatformStopped   PlatformEventKind = "vm-stopped"   // VM lost its power or crashed
	PlatformNodeDown  PlatformEventKind = "node-down"    // NodeID does not answer, or left the cluster
	PlatformNodeUp    PlatformEventKind = "node-up"      // it is back
	PlatformAlarm     PlatformEventKind = "alarm"        // anything else that the platform warns of: storage, network, redundancy
)

// PlatformEvent is something that the platform itself reports. Actions of the caller are among them where the platform does not
// distinguish them: migrating a VM may be reported as PlatformMoved.
type PlatformEvent struct {
	At     time.Time // by the clock of this program, mapped from the platform's
	Kind   PlatformEventKind
	VM     string // name in the run; "" where it concerns no VM of the tag
	NodeID string // of the node concerned, or where VM is from now on; "": not known
	From   string // id of the node where VM was before; "": not known
	Text   string // one sentence in the platform's own words, without secrets
}

// EventWatcher is a target whose platform reports what happens to its nodes and VMs.
type EventWatcher interface {
	// WatchEvents calls see for events from now on that concern the nodes of the target, VMs with the tag, or the storage they
	// use, never concurrently, until ctx ends; then it returns nil. It reconnects by itself. An error means that the platform
	// gives no events at all, such as for a missing privilege.
	WatchEvents(ctx context.Context, tag Tag, see func(PlatformEvent)) error
}
