package result

import "github.com/braggdev/bragg/internal/interval"

// Durations are the durations of operations on VMs and nodes. All come from pairs of events.
type Durations struct {
	Operations []OperationStats `json:"operations"`
	// Single lists the operations in the order of their start. LeftOut operations are missing from it but are included in the
	// statistics above.
	Single     []OperationTook `json:"single"`
	LeftOut    int             `json:"left_out,omitempty"`
	Recoveries []Recovery      `json:"recoveries,omitempty"`
}

// OperationStats summarizes one operation over its VMs or nodes. Times are in nanoseconds and include only operations that
// succeeded and whose end was watched. Percentiles use the nearest-rank definition; p95 needs twenty operations.
type OperationStats struct {
	Operation interval.Operation `json:"operation"`
	Of        string             `json:"of"` // "VM", "node", or "call" if the time of each VM is unknown
	Count     int                `json:"count"`
	Failed    int                `json:"failed"`
	// Unwatched counts those that ended at an unobserved time; Open counts those without an end in the record.
	Unwatched int    `json:"unwatched"`
	Open      int    `json:"open"`
	Simulated bool   `json:"simulated,omitempty"`
	Min       Number `json:"min"`
	Median    Number `json:"median"`
	P95       Number `json:"p95"`
	Max       Number `json:"max"`
	// UncertainNanos is by how much any of these times may be too long, because the end was between two polls. If no end was
	// watched, the statistics are upper bounds.
	UncertainNanos int64 `json:"uncertain_ns,omitempty"`
}

// OperationTook is one operation on one VM or node, or one call for several VMs.
type OperationTook struct {
	ID        int                `json:"id"`
	Part      int                `json:"operation_of,omitempty"`
	Operation interval.Operation `json:"operation"`
	Phase     string             `json:"phase,omitempty"`
	Group     string             `json:"group,omitempty"`
	Subject   string             `json:"subject,omitempty"` // VM or node; empty for a call
	Node      string             `json:"node,omitempty"`
	VMs       int                `json:"vms,omitempty"` // of a call
	FromNanos int64              `json:"from_ns"`
	ToNanos   *int64             `json:"to_ns"`   // null: no end in the record
	TookNanos *int64             `json:"took_ns"` // the difference; null without an end
	// UnwatchedNanos is the time without polls before the end, which may have been that much earlier.
	UnwatchedNanos int64  `json:"unwatched_ns,omitempty"`
	Error          string `json:"error,omitempty"`
	Simulated      bool   `json:"simulated,omitempty"`
}

// Recovery is the recovery from the power loss of one node.
type Recovery struct {
	Node      string             `json:"node"`
	Operation interval.Operation `json:"operation"` // node-off or node-shutdown
	VMs       int                `json:"vms"`       // that were on the node
	FromNanos int64              `json:"from_ns"`   // the power-off command
	Phases    []RecoveryPhase    `json:"phases"`
	TookNanos *int64             `json:"took_ns"` // until the last phase; null if any phase is unknown
}

// RecoveryPhase is one milestone. Known milestones split the time since the loss in the order in which they were reached.
type RecoveryPhase struct {
	Name    string `json:"name"`
	AtNanos *int64 `json:"at_ns"` // null: unknown
	// TookNanos is the time since the previous milestone, or since the loss.
	TookNanos *int64 `json:"took_ns"`
	// UncertainNanos is how much earlier it may have been reached, because it was not polled in that time.
	UncertainNanos int64  `json:"uncertain_ns,omitempty"`
	Unknown        string `json:"unknown,omitempty"` // why it is unknown
	Note           string `json:"note,omitempty"`
}
