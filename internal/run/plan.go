package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/unit"
)

// Phase of a run.
type Phase string

const (
	Setup    Phase = "setup"
	Run      Phase = "run"
	Teardown Phase = "teardown"
	Undoing  Phase = "undo"
)

// Options of a plan. The zero value plans a full run with the native engine.
type Options struct {
	Engine string // name of a generator for all workloads; "" is the scenario's choice, else "native"
	Seed   uint64
	// Rehearse is about how long the run phase of a rehearsal takes; 0 plans a full run.
	Rehearse time.Duration
	// RehearseBytes bounds what a rehearsal touches on the target's storage; 0 is 2 GiB.
	RehearseBytes int64
	// AllowShell: the user lets the scenario run programs.
	AllowShell bool
	// FullPercentMax is how full the storage may be afterwards, in percent; 0 is 70.
	FullPercentMax float64
}

// Plan says everything a run will do. It is a value: printing it, as text or JSON, touches nothing.
type Plan struct {
	Format     int               `json:"format"`
	Scenario   PlanScenario      `json:"scenario"`
	Target     PlanTarget        `json:"target"`
	Seed       uint64            `json:"seed"`
	Rehearsal  *result.Rehearsal `json:"rehearsal,omitempty"`
	Groups     []PlanGroup       `json:"groups"`
	Workloads  []PlanWorkload    `json:"workloads"`
	Steps      []PlanStep        `json:"steps"`
	Footprint  Footprint         `json:"footprint"`
	Windows    []string          `json:"windows"` // names that expectations can use, in the order of time; at most 92
	Power      []PowerOperation  `json:"power_operations"`
	Undo       []string          `json:"undo"` // in the order in which it is done
	Estimate   Estimate          `json:"estimate"`
	Unfit      []Unfit           `json:"unfit"` // why Preflight refuses
	Notes      []string          `json:"notes"`
	Warnings   diag.List         `json:"warnings"`
	AllowShell bool              `json:"allow_shell"`

	bound     []boundStep // parallel to Steps
	workloads map[string]*workloadPlan
	inventory target.Inventory
	scenario  *scenario.Scenario
}

// planFormat is raised when a reader of the former version could misread a plan.
const planFormat = 1

// PlanScenario identifies the scenario.
type PlanScenario struct {
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Hash        string `json:"hash"`
	Preset      string `json:"preset,omitempty"`
}

// PlanTarget identifies the target.
type PlanTarget struct {
	Provider  string        `json:"provider"`
	Name      string        `json:"name"`
	Simulated bool          `json:"simulated"`
	Nodes     []target.Node `json:"nodes"` // those that the plan uses, in the order that node slices count
	FreeBytes int64         `json:"free_bytes"`
	// Hypervisor is as in target.Inventory.
	Hypervisor string `json:"hypervisor,omitempty"`
	// RestartsElsewhere and RestartsWithNode are as in target.Inventory.
	RestartsElsewhere bool `json:"restarts_elsewhere,omitempty"`
	RestartsWithNode  bool `json:"restarts_with_node,omitempty"`
	// TotalBytes is 0 where the target does not tell.
	TotalBytes int64                        `json:"total_bytes"`
	Imitated   map[target.Capability]string `json:"imitated,omitempty"` // only those that the plan uses
}

// PlanGroup is one group with its VMs, those that Grow adds included.
type PlanGroup struct {
	Name          string     `json:"name"`
	Prefix        string     `json:"prefix"` // of VM names
	Template      string     `json:"template"`
	VCPUs         int        `json:"vcpus"`
	RAMBytes      int64      `json:"ram_bytes"`
	ExporterPorts []int      `json:"exporter_ports,omitempty"`
	NodeIndexes   []int      `json:"node_indexes"`
	Count         int        `json:"count"`       // when deployed
	CountFinal    int        `json:"count_final"` // after the last Grow
	Disks         []PlanDisk `json:"disks"`       // of each VM
	VMs           []PlanVM   `json:"vms"`
	TouchedBytes  int64      `json:"touched_bytes"` // per VM: extents of all its workloads, merged
	// ScenarioCount and ScenarioCountFinal are what the scenario comes to on all nodes of the target, before a rehearsal made
	// it smaller.
	ScenarioCount      int         `json:"scenario_count"`
	ScenarioCountFinal int         `json:"scenario_count_final"`
	Counts             map[int]int `json:"counts,omitempty"` // of a rehearsal: scenario's count → count now
}

// PlanDisk is one data disk of each VM of a group.
type PlanDisk struct {
	Device        string `json:"device"`
	SizeBytes     int64  `json:"size_bytes"`
	ScenarioBytes int64  `json:"scenario_bytes"`
}

// PlanVM is one VM and where it is placed.
type PlanVM struct {
	Name   string `json:"name"`
	NodeID string `json:"node_id"`
	Grown  bool   `json:"grown,omitempty"` // added by vm_group.Grow, as a clone of the group's first VM
}

// PlanWorkload is one workload with what its generator would do on one VM. All VMs of a group do the same.
type PlanWorkload struct {
	Name       string            `json:"name"`
	Group      string            `json:"vm_group"`
	ConfigFile string            `json:"config_file"`
	Generator  string            `json:"generator"`
	Options    map[string]string `json:"options,omitempty"`
	Scale      load.Scale        `json:"scale"`
	// Load is the workload proper, Prefill the prefill of its extents. Each is nil when no step asks for it.
	Load    *load.Plan `json:"load,omitempty"`
	Prefill *load.Plan `json:"prefill,omitempty"`
}

// PlanStep is one step with its arguments after defaults and rehearsal.
type PlanStep struct {
	ID       int    `json:"id"` // from 1
	Phase    Phase  `json:"phase"`
	Name     string `json:"name"`
	Subject  string `json:"subject,omitempty"` // group, workload or nodes, for a reader
	Group    string `json:"vm_group,omitempty"`
	Workload string `json:"workload,omitempty"`
	Nodes    bool   `json:"nodes,omitempty"`  // Subject names nodes
	Within   string `json:"within,omitempty"` // the step that was expanded into this one
	// Branch is in which branch of the parallel step before it the step runs, from 1; 0: in none.
	Branch int `json:"branch,omitempty"`
	// Label is what windows call the step, "" for steps that windows are not named after.
	Label string `json:"label,omitempty"`
	// Iteration counts from 1 in the repetitions around the step, outermost first: "2", "2.1".
	Iteration string         `json:"iteration,omitempty"`
	Line      int            `json:"line,omitempty"`
	Args      map[string]any `json:"args"`
	Start     time.Duration  `json:"start_ns"`    // estimated, from the start of the run
	Duration  time.Duration  `json:"duration_ns"` // estimated
	Rough     bool           `json:"rough,omitempty"`
	Imitated  string         `json:"imitated,omitempty"` // what this target only imitates of it
	Lasting   *Lasting       `json:"lasting,omitempty"`  // of a rehearsal: the load that it starts goes on beyond its runtime
}

// Footprint is what a run leaves on the target's storage while it lasts.
type Footprint struct {
	VMs           int   `json:"vms"`
	TouchedBytes  int64 `json:"touched_bytes"`  // of all VMs: distinct bytes that loads touch, clones included
	SnapshotBytes int64 `json:"snapshot_bytes"` // bound of what snapshots add
	DiskBytes     int64 `json:"disk_bytes"`     // nominal size of all data disks
	// WrittenBytes bounds what all loads write; -1 where some write as fast as the storage takes it.
	WrittenBytes int64 `json:"written_bytes"`
	// WrittenKnownBytes is the part of it that is known. WrittenFreely is for how long in all loads write as fast as the
	// storage takes it, with WrittenForever beside it when some do so until they are stopped.
	WrittenKnownBytes int64         `json:"written_known_bytes"`
	WrittenFreely     time.Duration `json:"written_freely_ns,omitempty"`
	WrittenForever    bool          `json:"written_forever,omitempty"`
	// WrittenLastingBytes and WrittenLastingFreely come on top at most where loads of a rehearsal last over steps (Lasting).
	WrittenLastingBytes  int64         `json:"written_lasting_bytes,omitempty"`
	WrittenLastingFreely time.Duration `json:"written_lasting_freely_ns,omitempty"`
	BoundBytes           int64         `json:"bound_bytes,omitempty"` // of a rehearsal
	// Replication is how often the storage keeps each byte; 0 counts as 1.
	Replication int `json:"replication_factor,omitempty"`
}

// Written says what loads write at most.
func (f Footprint) Written() string {
	text := f.writtenInTime()
	switch {
	case f.WrittenLastingFreely > 0:
		return fmt.Sprintf("%s; loads that last over slow steps go on for %s more at most", text, unit.FormatDuration(f.WrittenLastingFreely))
	case f.WrittenLastingBytes > 0:
		return fmt.Sprintf("%s; loads that last over slow steps write %s more at most", text, unit.FormatBytes(f.WrittenLastingBytes))
	}
	return text
}

// writtenInTime says it for loads that end as planned.
func (f Footprint) writtenInTime() string {
	known := unit.FormatBytes(f.WrittenKnownBytes)
	switch {
	case f.WrittenBytes >= 0:
		return "at most " + known
	case f.WrittenForever:
		return "at least " + known + ", beyond that bound by time and device only"
	}
	return fmt.Sprintf("at most %s, and what the storage takes in %s: %.3g GB for each GB/s", known,
		unit.FormatDuration(f.WrittenFreely), f.WrittenFreely.Seconds())
}

// Bytes returns the storage that the run takes at most, as its VMs see it.
func (f Footprint) Bytes() int64 { return f.TouchedBytes + f.SnapshotBytes }

// StoredBytes returns what that takes with all copies that the storage keeps.
func (f Footprint) StoredBytes() int64 { return f.Bytes() * int64(max(1, f.Replication)) }

// copies tells of the copies in a size that holds them.
func (f Footprint) copies() string {
	if f.Replication <= 1 {
		return ""
	}
	return fmt.Sprintf(" (%d copies of %s)", f.Replication, unit.FormatBytes(f.Bytes()))
}

// PowerOperation is one node operation.
type PowerOperation struct {
	StepID int    `json:"step_id"`
	Node   string `json:"node"`
	Action string `json:"action"` // "off" or "on"
}

// Estimate is how long the phases take.
type Estimate struct {
	Setup    time.Duration `json:"setup_ns"`
	Run      time.Duration `json:"run_ns"`
	Teardown time.Duration `json:"teardown_ns"`
	Total    time.Duration `json:"total_ns"`
	// Rough: some steps are bound by size, and the target's throughput was assumed.
	Rough bool `json:"rough,omitempty"`
	// Boots says what the time that VMs take to boot rests on, where it is part of the estimate.
	Boots string `json:"boots,omitempty"`
}

// ReadPlan reads a plan that was written as JSON, for Cleaner: together with its scenario it tells what was to be done,
// but it cannot be run.
func ReadPlan(text []byte, sc *scenario.Scenario) (*Plan, error) {
	p := &Plan{scenario: sc}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	if p.Format > planFormat {
		return nil, fmt.Errorf("read plan: format %d is newer than this program knows (%d)", p.Format, planFormat)
	}
	return p, nil
}

// Group returns the planned group with that name.
func (p *Plan) Group(name string) (PlanGroup, bool) {
	for _, g := range p.Groups {
		if g.Name == name {
			return g, true
		}
	}
	return PlanGroup{}, false
}

// workloadNumber returns the place of a workload in the scenario.
func (p *Plan) workloadNumber(name string) int {
	return max(0, slices.IndexFunc(p.Workloads, func(w PlanWorkload) bool { return w.Name == name }))
}

// Workload returns the planned workload with that name.
func (p *Plan) Workload(name string) (PlanWorkload, bool) {
	for _, w := range p.Workloads {
		if w.Name == name {
			return w, true
		}
	}
	return PlanWorkload{}, false
}

// timeFactor is that of a rehearsal, 1 in a full run.
func (p *Plan) timeFactor() float64 {
	if p.Rehearsal == nil {
		return 1
	}
	return p.Rehearsal.TimeFactor
}

// Scaled translates a number of VMs of the scenario into that of the plan, which differs in a rehearsal.
func (g PlanGroup) Scaled(scenarioCount int) int {
	if n, ok := g.Counts[scenarioCount]; ok {
		return n
	}
	return scenarioCount
}

// NodesOffMax returns how many nodes are off at once at most when the steps are run in their order. Of branches that run at
// once, all may have switched off before one switches on.
func (p *Plan) NodesOffMax() int {
	off, most := map[string]bool{}, 0
	var later []string // on again in a branch
	for _, o := range p.Power {
		branch := o.StepID > 0 && o.StepID <= len(p.Steps) && p.Steps[o.StepID-1].Branch > 0
		if !branch {
			for _, node := range later {
				delete(off, node)
			}
			later = nil
		}
		switch {
		case o.Action == "off":
			off[o.Node] = true
			later = slices.DeleteFunc(later, func(node string) bool { return node == o.Node })
		case branch:
			later = append(later, o.Node)
		default:
			delete(off, o.Node)
		}
		most = max(most, len(off))
	}
	return most
}
