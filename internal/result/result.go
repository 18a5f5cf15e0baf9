// Package result writes, seals and reads bundles. A bundle is one folder with all data of a run; it can be copied, archived and
// compared. The package does not evaluate or draw.
//
//	Create ──▶ Writer: manifest.json, plan.json, events.ndjson, {intervals,rollups,samples}.ndjson.zst (append only)
//	Writer.Seal(Summary) ──▶ summary.json and seal.json with the hash of every file
//	Open ──▶ Bundle: read only, lazy, also for a bundle that was cut off at any byte
//
// docs/formats/bundle.md is the contract with other programs.
package result

import (
	"time"

	"github.com/braggdev/bragg/internal/interval"
)

// FormatVersion is raised when a reader of the previous version could misread a bundle.
const FormatVersion = 1

// State of a bundle.
type State string

const (
	StateRunning State = "running" // being written, or its writer died
	StateSealed  State = "sealed"  // complete and hashed
	StateAborted State = "aborted" // sealed after the writer died
)

// Manifest identifies a run. It is written first and never changed.
type Manifest struct {
	Format      int                        `json:"format"`
	Run         string                     `json:"run"` // id: sortable time and random part
	Label       string                     `json:"label,omitempty"`
	Created     time.Time                  `json:"created"` // wall time of zero on the run's axis
	Scenario    ScenarioInfo               `json:"scenario"`
	Target      TargetInfo                 `json:"target"`
	Rehearsal   *Rehearsal                 `json:"rehearsal,omitempty"`
	Versions    map[string]string          `json:"versions"`    // bragg, go, kernel, fio, …
	Environment map[string]string          `json:"environment"` // cpu model, cores, memory, file system, …
	Engines     map[string]interval.Engine `json:"engines"`     // by workload, as planned
	Seed        uint64                     `json:"seed"`
	CommandLine []string                   `json:"command_line,omitempty"`
}

// ScenarioInfo is the part of the scenario that a report needs.
type ScenarioInfo struct {
	Name        string            `json:"name"`
	DisplayName string            `json:"display_name"`
	Summary     string            `json:"summary"`
	Description string            `json:"description"`
	Tags        []string          `json:"tags,omitempty"`
	Hash        string            `json:"hash"`
	Preset      string            `json:"preset,omitempty"`
	Variables   map[string]string `json:"variables,omitempty"`
	Origins     map[string]string `json:"origins,omitempty"` // variable → default, preset, command line
}

// TargetInfo is the part of the target that a report needs.
type TargetInfo struct {
	Provider  string            `json:"provider"`
	Name      string            `json:"name"`
	Simulated bool              `json:"simulated"`
	Nodes     []NodeInfo        `json:"nodes"`
	Facts     [][2]string       `json:"facts,omitempty"`
	Simulates map[string]string `json:"imitated,omitempty"`
	Sources   []SourceInfo      `json:"sources,omitempty"`
}

// SourceInfo is one source of counters of the storage.
type SourceInfo struct {
	Name          string `json:"name"`
	Kind          string `json:"kind"`
	IntervalNanos int64  `json:"interval_ns"`   // between two readings
	TLS           string `json:"tls,omitempty"` // "unverified" or "none", if the connection was not verified
	// Simulated: the platform that is the source only simulates its metrics.
	Simulated bool `json:"simulated,omitempty"`
	// Charts are those of the target file.
	Charts []SourceChart `json:"charts,omitempty"`
}

// SourceChart is a chart of the samples of a source.
type SourceChart struct {
	Title string `json:"title"`
	Query string `json:"query"` // PromQL on samples of the source; $__rate_interval is its window
	Unit  string `json:"unit,omitempty"`
}

// NodeInfo is one node of the target.
type NodeInfo struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Rehearsal holds every factor by which a run was made smaller than the scenario.
type Rehearsal struct {
	Asked      time.Duration      `json:"asked_ns"`
	TimeFactor float64            `json:"time_factor"`
	SizeFactor map[string]float64 `json:"size_factor"` // per group
	Counts     map[string][2]int  `json:"counts"`      // group → VMs in the scenario, VMs in the rehearsal
	Nodes      [2]int             `json:"nodes"`       // of the target, and those that the run uses
	// VCPUs and RAMBytes are the sizes of each VM in the scenario and in the rehearsal, for groups in which they differ.
	VCPUs    map[string][2]int   `json:"vcpus,omitempty"`
	RAMBytes map[string][2]int64 `json:"ram_bytes,omitempty"`
	Notes    []string            `json:"notes,omitempty"`
}

// Sample is one scraped or read metric value.
type Sample struct {
	AtNanos int64             `json:"at_ns"`
	Name    string            `json:"name"` // Prometheus metric name
	Labels  map[string]string `json:"labels"`
	Value   float64           `json:"value"`
}
