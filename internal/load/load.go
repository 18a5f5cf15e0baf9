// Package load defines the contract of load generation: a Workload is a value that describes the load, a Generator
// implements it, a Runner runs it locally or in an agent, and Intervals come back every second.
//
//	Workload ──▶ Generator.Plan    what would be touched (pure)
//	Workload ──▶ Generator.Prepare ──▶ Instance.Run(ctx, sink) ──▶ Intervals
//	Workload ──▶ Runner.Run(ctx, w, sink)    the same, in this process or in an agent; callers cannot tell
//
// The contract of generators is checked by loadtest.
package load

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
)

// Workload is the load for one VM. It is plain data and is sent as JSON.
type Workload struct {
	Name     string `json:"name"`
	Group    string `json:"group"`
	VM       string `json:"vm"`
	Ordinal  int    `json:"ordinal"` // of the VM in its group; clones must not share offsets or content
	Instance int    `json:"instance"`
	// Number is the index of the workload in its scenario, from 0; workloads must not share offsets or content either.
	Number int `json:"number,omitempty"`

	Generator  string            `json:"generator"`   // "native", "fio"
	ConfigName string            `json:"config_name"` // file name, for messages
	Config     string            `json:"config"`      // text of the job file
	Options    map[string]string `json:"options,omitempty"`

	Remote Remote `json:"remote,omitzero"` // of a load between two groups

	Devices []Device `json:"devices"` // devices that job files may name; all others are refused

	Runtime time.Duration `json:"runtime_ns"` // 0: to completion
	Prefill bool          `json:"prefill,omitempty"`
	// Remove, with Prefill: take away what an earlier prefill made outside of the VM, instead of making it. Only for workloads whose
	// prefill has Plan.Removes.
	Remove bool `json:"remove,omitempty"`

	Seed  uint64 `json:"seed"`  // of the run; streams derive from it, the number, the ordinal and the instance
	Scale Scale  `json:"scale"` // of a rehearsal

	// StartNanos is the start time on the run's time axis, whose zero is ZeroUnixNanos; 0 starts at once. Intervals are
	// reported on this axis. Without ZeroUnixNanos the axis begins when Run is called.
	StartNanos     int64         `json:"start_ns"`
	ZeroUnixNanos  int64         `json:"zero_unix_ns"`
	IntervalLength time.Duration `json:"interval_ns"` // 0: one second
}

// Device maps a name in job files to the path that is opened.
type Device struct {
	Name      string `json:"name"`
	Path      string `json:"path"`
	SizeBytes int64  `json:"size_bytes"`
	// Consent identifies the device and states what may be lost on it, if it is a block device that is written to.
	Consent Consent `json:"consent,omitzero"`
	// Held: the caller has checked the device and holds it exclusively, so that it cannot be opened elsewhere. Never
	// serialized.
	Held bool `json:"-"`
	// ActualBytes is the size of the created device if it differs from SizeBytes: a rehearsal plans with the scenario's
	// sizes but has smaller devices. 0 if it is the same or not known.
	ActualBytes int64 `json:"actual_bytes,omitempty"`
}

// Device returns the device with that name.
func (w *Workload) Device(name string) (Device, bool) {
	i := slices.IndexFunc(w.Devices, func(d Device) bool { return d.Name == name })
	if i < 0 {
		return Device{}, false
	}
	return w.Devices[i], true
}

// Scale shrinks byte extents of a rehearsal: size, filesize, offset, zonesize, zoneskip and io_size are multiplied by
// Factor, rounded to a multiple of the largest block of the job, and kept to at least BlocksMin such blocks. Rates and
// block sizes stay. The zero value changes nothing.
type Scale struct {
	Factor    float64 `json:"factor,omitempty"`
	BlocksMin int     `json:"blocks_min,omitempty"`
	// Times is less than 1 in a rehearsal that shortens times. It is for times in the configuration itself, and only for generators
	// that return Plan.TakesShortest; Workload.Runtime is shortened already.
	Times float64 `json:"times,omitempty"`
}

// Rehearsed reports whether anything is scaled.
func (s Scale) Rehearsed() bool {
	return s.Factor > 0 && s.Factor < 1 || s.Times > 0 && s.Times < 1
}

// Plan is what a workload would do, determined without touching anything.
type Plan struct {
	Engine  interval.Engine `json:"engine"`
	Jobs    []JobPlan       `json:"jobs"`
	Extents []extent.Extent `json:"extents"` // of all jobs, per device, merged and sorted
	Command string          `json:"command"` // the equivalent fio command
	Notes   []string        `json:"notes,omitempty"`
	Issues  diag.List       `json:"issues,omitempty"` // warnings; errors are returned as error
	// ScaledFrom is the extent before Scale, in bytes touched, 0 without scaling.
	ScaledFrom int64 `json:"scaled_from_bytes,omitempty"`
	// Program is set by generators that run other programs.
	Program *ProgramPlan `json:"program,omitempty"`
	// Replaces is what the prefill of the workload replaces although it is not the VM's own: `endpoint "rds"`. Only one VM may do that.
	Replaces string `json:"replaces,omitempty"`
	// Removes is what the end of the run removes of what this prefill made outside of the VM: `the data of endpoint "rds"`; "" for
	// nothing.
	Removes string `json:"removes,omitempty"`
	// InStep: the VMs of the load wait for each other, and the first one has a server of it that all of them are clients of. Generators
	// say so if Workload.Remote.VMs is more than one.
	InStep bool `json:"in_step,omitempty"`
	// BesideServer: the clients of the load run on the VM of the server that it starts.
	BesideServer bool `json:"beside_server,omitempty"`
	// EndpointCPUs are those of the endpoint that the load uses, nil if the scenario does not state them.
	EndpointCPUs *EndpointCPUs `json:"endpoint_cpus,omitempty"`
	// InMemory: the data of the load is meant to be in memory. Its disks have at most a log of changes, and copies of the data.
	InMemory bool `json:"in_memory,omitempty"`
	// Computes: the load is computation or access to memory, whose CPU time is the work and not an effort beside it.
	Computes bool `json:"computes,omitempty"`
	// LogBytes is how much of the extents is the log of a database, which is not data that it reads.
	LogBytes int64 `json:"log_bytes,omitempty"`
	// OwnData: the load itself writes all data that it reads.
	OwnData bool `json:"own_data,omitempty"`
	// BytesWritten is the upper bound of bytes written: exact for size-bound jobs, -1 if only a rate or the device limits
	// it.
	BytesWritten int64 `json:"bytes_written"`
	// WriteRate is how many bytes per second the rates let all jobs write on average, 0 if one of them writes without a
	// rate.
	WriteRate     int64 `json:"write_bytes_per_second,omitempty"`
	BlockBytesMax int64 `json:"block_bytes_max"`
	// TakesLeast is the minimum duration of the load according to rates and runtimes in the configuration, TakesMost the
	// maximum that its runtimes allow, both without Workload.Runtime; 0 if the configuration does not define it.
	TakesLeast time.Duration `json:"takes_least_ns,omitempty"`
	TakesMost  time.Duration `json:"takes_most_ns,omitempty"`
	// Ramp is how long no job of the load counts its operations after the start: results leave that time out.
	Ramp time.Duration `json:"ramp_ns,omitempty"`
	// TakesShortest is the least duration to which Scale.Times shortens the load; 0 if it does not.
	TakesShortest time.Duration `json:"takes_shortest_ns,omitempty"`
	// Timed: at least one job ends by time, according to the configuration. A load that is not timed and has no runtime
	// lasts until its data is processed, and its duration is a result.
	Timed bool `json:"timed,omitempty"`
	// MemoryBytes is the memory that the generator allocates for buffers on the VM; 0 if unknown.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
}

// EndpointCPUs are the CPUs of a database elsewhere, as the scenario states them.
type EndpointCPUs struct {
	VCPUs   int  `json:"vcpus"`
	Threads int  `json:"threads_per_core"`
	Each    bool `json:"each,omitempty"` // each VM of the load has an endpoint of its own
}

// JobPlan is one job of the file.
type JobPlan struct {
	Name       string  `json:"name"`
	Pattern    string  `json:"pattern"` // "randread", "write", …
	BlockSizes string  `json:"block_sizes"`
	QueueDepth int     `json:"queue_depth"`
	RateIOPS   float64 `json:"rate_iops,omitempty"` // 0: closed loop
	SizeBytes  int64   `json:"size_bytes"`
	Reads      bool    `json:"reads,omitempty"`
	Direct     bool    `json:"direct,omitempty"` // bypasses the page cache
	Clones     int     `json:"clones"`

	Writes   bool  `json:"writes,omitempty"` // or trims
	BlockMin int64 `json:"block_bytes_min,omitempty"`
	BlockMax int64 `json:"block_bytes_max,omitempty"`
	// AlignBytes is the largest power of two that divides every offset and every length of its operations.
	AlignBytes int64 `json:"align_bytes,omitempty"`
	// DepthAsked is the queue depth of the job file. QueueDepth is 1 if the job's engine is synchronous.
	DepthAsked int `json:"depth_requested,omitempty"`
	// Flushes: its writes are synchronous, or it flushes files now and then.
	Flushes bool `json:"flushes,omitempty"`
	// SameRegion: all clones go through the same range in order.
	SameRegion bool `json:"same_region,omitempty"`
	// Linear: the operations of its rate are equally spaced, and those of its clones due at the same moments.
	Linear bool `json:"linear_rate,omitempty"`
	// NoRandomMap: random operations may repeat a block before they used all others.
	NoRandomMap bool `json:"no_random_map,omitempty"`
	// Memory: its operations access memory, and no device.
	Memory bool `json:"memory,omitempty"`
	// Reducible is the share of what it writes that compression or deduplication would not store: 1 for zeros.
	Reducible float64 `json:"reducible,omitempty"`
	// Pauses: it does not have its queue depth in flight, or keep its rate, all the time that is recorded: it starts later, has a
	// ramp, thinks, or follows a log.
	Pauses bool `json:"pauses,omitempty"`
	// Shares: its operations are some of those that the job before it has in flight, such as those of the second script of the same clients.
	Shares bool `json:"shares_depth,omitempty"`
}

// Reads reports whether any job reads.
func (p *Plan) Reads() bool {
	return slices.ContainsFunc(p.Jobs, func(j JobPlan) bool { return j.Reads })
}

// Direct reports whether any job bypasses the page cache.
func (p *Plan) Direct() bool {
	return slices.ContainsFunc(p.Jobs, func(j JobPlan) bool { return j.Direct })
}

// Depth returns the queue depth of all jobs and clones together.
func (p *Plan) Depth() (sum int) {
	for _, j := range p.Jobs {
		if !j.Shares {
			sum += j.QueueDepth * j.Clones
		}
	}
	return sum
}

// OptionRateScale is the option of a workload by which all rates of the job file are multiplied, for every generator that
// reads job files.
const OptionRateScale = "rate_scale"

// RateScale reads that option: 1 if it is not set. Scales are above 0 and at most a million.
func (w *Workload) RateScale() (float64, error) {
	text, has := w.Options[OptionRateScale]
	if !has {
		return 1, nil
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || !(scale > 0 && scale <= 1e6) {
		return 0, &diag.Error{
			Code: "bad-generator-option", Exit: diag.ExitData,
			Message: fmt.Sprintf("option %q of workload %q: invalid factor %q", OptionRateScale, w.Name, text),
			Hint:    "the rates of the job file are multiplied by it: above 0, at most 1000000, for example 2.5",
		}
	}
	return scale, nil
}

// Generator turns Workloads into load. Implementations are values without state.
type Generator interface {
	// Plan parses the configuration and returns what would happen. It opens nothing. An option that the generator does not
	// support is an error that names it.
	Plan(w Workload) (Plan, error)
	// Prepare opens devices and allocates; nothing is written yet. The caller calls Run once, or Close.
	Prepare(ctx context.Context, w Workload) (Instance, error)
}

// Instance is one prepared workload.
type Instance interface {
	// Run drives the load until it is complete, the runtime is over or ctx ends, delivers an Interval for every elapsed
	// period (including periods without traffic) and then one with Final set. It returns nil even if ctx ended the load,
	// and an error if the load could not run. All goroutines and descriptors are gone afterwards.
	Run(ctx context.Context, sink Sink) error
	// Close releases what Prepare allocated. After Run it has no effect.
	Close() error
}

// Sink receives intervals in the order of Sequence. It must not block the caller for long, and it owns the intervals that
// it receives.
type Sink interface {
	Interval(iv interval.Interval)
}

// SinkFunc is a function as a Sink.
type SinkFunc func(interval.Interval)

// Interval calls f.
func (f SinkFunc) Interval(iv interval.Interval) { f(iv) }

// Runner runs workloads on one VM.
type Runner interface {
	// Run prepares and runs w, and blocks until the last interval was delivered. A cancelled ctx stops the load and is not
	// an error. If the VM is lost (power off, crash), the error is ErrLost.
	Run(ctx context.Context, w Workload, sink Sink) error
}

// Describer is implemented by Instances that know more about the engine than their Plan: the back end that this machine
// allowed, buffered access where a file system refused direct access.
type Describer interface {
	// Engine returns the actual engine, in the form of Plan.Engine.
	Engine() interval.Engine
}
