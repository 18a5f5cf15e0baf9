package result

// Impact is the cost of one event of the run phase for the loads that ran over it.
type Impact struct {
	// Event is the label of its step in windows, the workload that started, or what happened to the VMs.
	Event string     `json:"event"`
	Kind  ImpactKind `json:"kind"`
	// With are further steps within two seconds, whose cost cannot be separated.
	With []string `json:"with"`
	// Subjects are the nodes that a step switched, the VMs that were lost, or the workload that started.
	Subjects  []string `json:"subjects"`
	VMs       int      `json:"vms"`             // on which the step acted, 0 if it acted on none or on an unknown number
	Calls     int      `json:"calls,omitempty"` // how often the step acted on them all, if its calls are too close to be events of their own
	Simulated bool     `json:"simulated,omitempty"`
	FromNanos int64    `json:"from_ns"`
	ToNanos   int64    `json:"to_ns"`
	// Overlaps are other events whose effects cannot be separated from those of this one.
	Overlaps []string     `json:"overlaps"`
	Loads    []ImpactLoad `json:"loads"`
}

// ImpactKind is what an event did.
type ImpactKind string

const (
	ImpactNodeOff      ImpactKind = "node-off"
	ImpactNodeShutdown ImpactKind = "node-shutdown"
	ImpactNodeOn       ImpactKind = "node-on"
	ImpactMigrate      ImpactKind = "migrate"
	ImpactSnapshot     ImpactKind = "snapshot"
	ImpactClone        ImpactKind = "clone"
	ImpactPowerOn      ImpactKind = "power-on"
	ImpactNeighbor     ImpactKind = "neighbor"   // another workload, over all of its time
	ImpactAgentLost    ImpactKind = "agent-lost" // the controller lost the connection to agents
	ImpactVMStopped    ImpactKind = "vm-stopped" // VMs stopped, and the run did not cause it
	ImpactStep         ImpactKind = "step"       // any other step
)

// ImpactLoad is the cost for one load. VMs that the event itself took away (on the node that lost power, powered off, with a lost
// agent) are scored apart from those that lived on: a sum over both would show their absence as a loss of the platform.
type ImpactLoad struct {
	Workload string `json:"workload"`
	Group    string `json:"group"`
	// Quantity is "bandwidth" for a load with operations of 64 KiB and more, otherwise "iops"; all rates are in Unit.
	Quantity string `json:"quantity"`
	Unit     string `json:"unit"`
	// UntilNanos is the end of the time in which the effect is looked for: the next event or the end of the load.
	UntilNanos int64        `json:"until_ns"`
	LivedOn    *ImpactScore `json:"lived_on"`   // null: no VM of this load
	TakenAway  *ImpactScore `json:"taken_away"` // null: no VM of this load
	Single     []ImpactVM   `json:"single"`     // VM by VM
}

// ImpactVM is the cost for one VM.
type ImpactVM struct {
	VM    string `json:"vm"`
	Taken bool   `json:"taken"` // the event itself took it away
	ImpactScore
}

// ImpactScore is the cost of an event for one VM, or for several together. Times count from the start of the event; their resolution
// is one second, that of the series.
type ImpactScore struct {
	Count int `json:"count"` // VMs
	// Unknown is why there are no rates, "" if there are: no load for ten seconds before the event, for example.
	Unknown  string         `json:"unknown,omitempty"`
	Baseline ImpactBaseline `json:"baseline"`
	Level    Number         `json:"level"` // mean rate from the event to the end of the time looked at
	Dip      ImpactDip      `json:"dip"`
	Stall    ImpactStall    `json:"stall"`
	Within5  ImpactBack     `json:"within_5_percent"`
	Within10 ImpactBack     `json:"within_10_percent"`
	// FirstIONanos is the time until the first operation completed, to the start of its interval, or the longest stall if that is
	// shorter; null: none completed.
	FirstIONanos *int64     `json:"first_io_ns"`
	Lost         ImpactLost `json:"lost"`
	// Vanished counts VMs of the others that delivered nothing more and count as doing nothing.
	Vanished       int           `json:"vanished"`
	MissingSeconds int           `json:"missing_seconds"` // without data, left out
	Latency        ImpactLatency `json:"latency"`
}

// ImpactBaseline is the stretch before an event with which it is compared. Its own variation is the yardstick.
type ImpactBaseline struct {
	FromNanos   int64  `json:"from_ns"`
	ToNanos     int64  `json:"to_ns"`
	Seconds     int    `json:"seconds"` // with data
	Mean        Number `json:"mean"`
	CV          Number `json:"cv"`          // of the seconds: standard deviation by mean
	Correlation Number `json:"correlation"` // of a second with the next one
}

// ImpactDip is how far a rate fell below its baseline. Shares are of the baseline.
type ImpactDip struct {
	Seen bool `json:"seen"` // beyond chance
	// Depth is the largest loss over OverSeconds, the shortest stretch whose loss is beyond chance; 0 if none is.
	Depth       Number `json:"depth"`
	OverSeconds int    `json:"over_seconds"`
	Lowest      Number `json:"lowest"`  // the rate there
	AtNanos     int64  `json:"at_ns"`   // of its start
	FromNanos   int64  `json:"from_ns"` // the first and the last second of the dip: at least 5 %, or half of a smaller Depth, below the baseline
	ToNanos     int64  `json:"to_ns"`
	// Seconds counts those below that line between the two. If they are fewer than half, Mean is their rate, otherwise that of all.
	Seconds int    `json:"seconds"`
	Mean    Number `json:"mean"`
	Then    Number `json:"then"` // mean rate from ToNanos on
	// StaysBelow: Then is below the baseline beyond chance, though by less than the dip.
	StaysBelow bool `json:"stays_below"`
	// Detectable is the smallest loss over ten seconds (or all, if there are fewer) that would have been seen with a probability of
	// 95 %, DetectableSecond that of one second.
	Detectable       Number `json:"detectable"`
	DetectableSecond Number `json:"detectable_second"`
}

// ImpactStall is the longest time in which one VM completed nothing. If the generator does not record gaps between completions (fio),
// the slowest operation bounds it within a second: it is between AtLeastNanos and Nanos, and both are 0 without a stall of 100 ms.
type ImpactStall struct {
	Nanos        int64  `json:"longest_ns"`
	AtLeastNanos int64  `json:"at_least_ns"`
	AtNanos      int64  `json:"at_ns"`
	VM           string `json:"vm"`
	// BaselineNanos is the longest of the baseline, 0 if that is not recorded.
	BaselineNanos int64 `json:"baseline_ns"`
	PausedNanos   int64 `json:"paused_ns"` // the longest time in which the load generator itself did not run
	Open          bool  `json:"open"`      // it lasts to the end of the time looked at
}

// ImpactBack is the time until a rate was back within a share of its baseline and stayed there, 0 if it never left.
type ImpactBack struct {
	Nanos        *int64 `json:"ns"`                // null: unknown
	AtLeastNanos int64  `json:"at_least_ns"`       // to the end of the last second that was not back
	Unknown      string `json:"unknown,omitempty"` // why
}

// ImpactLost counts operations. Operations is the area between baseline and rate, from the event to the end of the dip and of what was
// made up for at once; with UncertainOperations it is a 95 % interval. The others are in excess of the baseline's.
type ImpactLost struct {
	Operations          Number `json:"operations"`
	UncertainOperations Number `json:"uncertain_operations"`
	Failed              uint64 `json:"failed"`
	Dropped             uint64 `json:"dropped"` // due and never issued
	InFlight            uint64 `json:"cut_off"` // in flight on VMs that were lost; at least one each
}

// ImpactLatency is the latency over the baseline, over the event (at least ten seconds) and over ten minutes after it at most, from
// merged histograms.
type ImpactLatency struct {
	Kind   string         `json:"kind"` // "response" where it is recorded, otherwise "service"
	Before *LatencyDigest `json:"before"`
	During *LatencyDigest `json:"during"`
	After  *LatencyDigest `json:"after"`
}

// LatencyDigest is a latency in brief, in nanoseconds.
type LatencyDigest struct {
	Count   uint64 `json:"count"`
	Median  Number `json:"median"`
	P99     Number `json:"p99"`
	Max     Number `json:"max"`
	AtLeast Bounds `json:"at_least"`
	// Range is the lowest and the highest p99 of eighths of a baseline: its own variation. Null for single VMs, for other stretches, and
	// where fewer than five eighths have enough operations.
	Range *[2]Number `json:"p99_range,omitempty"`
}
