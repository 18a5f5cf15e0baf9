package result

import "github.com/braggdev/bragg/internal/interval"

// Durations are how long what was done to VMs and nodes took. All come from pairs of events.
type Durations struct {
	Operations []OperationStats `json:"operations"`
	// Single are the operations one by one, in the order of their begin; LeftOut of them are missing here and count above.
	Single     []OperationTook `json:"single"`
	LeftOut    int             `json:"left_out,omitempty"`
	Recoveries []Recovery      `json:"recoveries,omitempty"`
}

// OperationStats sums up one operation over the VMs or nodes that it was done to. Times are in nanoseconds, percentiles by the
// nearest-rank definition, of those that ended well and were watched; p95 needs twenty.
type OperationStats struct {
	Operation interval.Operation `json:"operation"`
	Of        string             `json:"of"` // "VM", "node", or "call" where how long each VM took is not known
	Count     int                `json:"count"`
	Failed    int                `json:"failed"`
	// Unwatched ended at an unobserved moment; Open have no end in the record.
	Unwatched int    `json:"unwatched"`
	Open      int    `json:"open"`
	Simulated bool   `json:"simulated,omitempty"`
	Min       Number `json:"min"`
	Median    Number `json:"median"`
	P95       Number `json:"p95"`
	Max       Number `json:"max"`
	// UncertainNanos is by how much any of these times may be too long, because its end came between two polls. Where no end was
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
	// UnwatchedNanos is for how long before the end it was not polled: it may have come that much earlier.
	UnwatchedNanos int64  `json:"unwatched_ns,omitempty"`
	Error          string `json:"error,omitempty"`
	Simulated      bool   `json:"simulated,omitempty"`
}

// Recovery is what followed from the loss of one node's power.
type Recovery struct {
	Node      string             `json:"node"`
	Operation interval.Operation `json:"operation"` // node-off or node-shutdown
	VMs       int                `json:"vms"`       // that were on the node
	FromNanos int64              `json:"from_ns"`   // the command that took the power
	Phases    []RecoveryPhase    `json:"phases"`
	TookNanos *int64             `json:"took_ns"` // until the last phase; null when one is not known
}

// RecoveryPhase is one milestone. Those that are known split the time since the loss in the order in which they were reached.
type RecoveryPhase struct {
	Name    string `json:"name"`
	AtNanos *int64 `json:"at_ns"` // null: not known
	// TookNanos is the time since the milestone before it in time, or since the loss.
	TookNanos *int64 `json:"took_ns"`
	// UncertainNanos is how much earlier it may have been reached: it was not polled in that time.
	UncertainNanos int64  `json:"uncertain_ns,omitempty"`
	Unknown        string `json:"unknown,omitempty"` // why it is not known
	Note           string `json:"note,omitempty"`
}
