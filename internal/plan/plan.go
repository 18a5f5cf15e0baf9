// Package plan has the content of plan.json of a bundle as values: everything that a run will do. Package planner makes plans;
// this package reads, searches and prints them.
//
//	plan.go       the parts of a plan, Read
//	footprint.go  the space that a run takes on the target's storage
//	lasting.go    loads that are extended beyond their runtime
//	source.go     sources of counters of the storage
//	text.go       a plan as text
package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
)

// Phase of a run.
type Phase string

const (
	Setup    Phase = "setup"
	Run      Phase = "run"
	Teardown Phase = "teardown"
	Undoing  Phase = "undo"
)

// Plan describes everything that a run will do. It is a value: printing it, as text or JSON, has no side effects.
type Plan struct {
	Format     int               `json:"format"`
	Scenario   Scenario          `json:"scenario"`
	Target     Target            `json:"target"`
	Seed       uint64            `json:"seed"`
	Rehearsal  *result.Rehearsal `json:"rehearsal,omitempty"`
	Groups     []Group           `json:"groups"`
	Workloads  []Workload        `json:"workloads"`
	Steps      []Step            `json:"steps"`
	Footprint  Footprint         `json:"footprint"`
	Windows    []string          `json:"windows"` // names that thresholds can use, in the order of time; at most 92
	Power      []PowerOperation  `json:"power_operations"`
	Sources    []Source          `json:"sources,omitempty"`
	Undo       []string          `json:"undo"` // in order of execution
	Estimate   Estimate          `json:"estimate"`
	Unfit      []Unfit           `json:"unfit"` // why Preflight refuses
	Notes      []string          `json:"notes"`
	Warnings   diag.List         `json:"warnings"`
	AllowShell bool              `json:"allow_shell"`
}

// Format is raised when a reader of the previous version could misread a plan.
const Format = 1

// Read reads a plan that was written as JSON. Keys that are missing stay empty, and unknown ones are ignored.
func Read(text []byte) (*Plan, error) {
	p := &Plan{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	if p.Format > Format {
		return nil, fmt.Errorf("read plan: format %d is newer than this program supports (%d)", p.Format, Format)
	}
	return p, nil
}

// Scenario identifies the scenario.
type Scenario struct {
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Hash        string `json:"hash"`
	Preset      string `json:"preset,omitempty"`
}

// Target identifies the target.
type Target struct {
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
	// TotalBytes is 0 if the target does not report it.
	TotalBytes int64                        `json:"total_bytes"`
	Simulates  map[target.Capability]string `json:"imitated,omitempty"` // only those that the plan uses
}

// Group is one group with its VMs, including those that Grow adds.
type Group struct {
	Name          string          `json:"name"`
	Prefix        string          `json:"prefix"` // of VM names
	Template      string          `json:"template"`
	VCPUs         int             `json:"vcpus"`
	Topology      target.Topology `json:"cpu_topology,omitzero"`
	RAMBytes      int64           `json:"ram_bytes"`
	ExporterPorts []int           `json:"exporter_ports,omitempty"`
	NodeIndexes   []int           `json:"node_indexes"`
	Count         int             `json:"count"`       // when deployed
	CountFinal    int             `json:"count_final"` // after the last Grow
	Disks         []Disk          `json:"disks"`       // of each VM
	VMs           []VM            `json:"vms"`
	TouchedBytes  int64           `json:"touched_bytes"` // per VM: extents of all its workloads, merged
	// ScenarioCount and ScenarioCountFinal are the scenario's counts on all nodes of the target, before the scaling of a
	// rehearsal.
	ScenarioCount      int         `json:"scenario_count"`
	ScenarioCountFinal int         `json:"scenario_count_final"`
	Counts             map[int]int `json:"counts,omitempty"` // of a rehearsal: count in the scenario → count in the rehearsal
}

// Disk is one data disk of each VM of a group.
type Disk struct {
	Device        string `json:"device"`
	SizeBytes     int64  `json:"size_bytes"`
	ScenarioBytes int64  `json:"scenario_bytes"`
}

// VM is one VM and its placement.
type VM struct {
	Name   string `json:"name"`
	NodeID string `json:"node_id"`
	Grown  bool   `json:"grown,omitempty"` // added by vm_group.Grow, as a clone of the group's first VM
}

// Workload is one workload with what its generator would do on one VM. All VMs of a group do the same.
type Workload struct {
	Name       string            `json:"name"`
	Group      string            `json:"vm_group"`
	ConfigFile string            `json:"config_file"`
	Generator  string            `json:"generator"`
	Options    map[string]string `json:"options,omitempty"`
	Servers    *Servers          `json:"servers,omitempty"` // of a load between two groups
	Scale      load.Scale        `json:"scale"`
	// Load is the workload itself, Prefill the prefill of its extents. Each is nil if no step requests it.
	Load    *load.Plan `json:"load,omitempty"`
	Prefill *load.Plan `json:"prefill,omitempty"`
}

// Step is one step with its arguments after defaults and rehearsal.
type Step struct {
	ID       int    `json:"id"` // from 1
	Phase    Phase  `json:"phase"`
	Name     string `json:"name"`
	Subject  string `json:"subject,omitempty"` // group, workload or nodes, for display
	Group    string `json:"vm_group,omitempty"`
	Workload string `json:"workload,omitempty"`
	Nodes    bool   `json:"nodes,omitempty"`  // Subject names nodes
	Within   string `json:"within,omitempty"` // the step that was expanded into this one
	// Branch is the branch of the preceding parallel step in which the step runs, from 1; 0: none.
	Branch int `json:"branch,omitempty"`
	// Label is the name of the step in window names. Steps that only wait or contain others, and those outside the run phase,
	// have none: no window is cut at them.
	Label string `json:"label,omitempty"`
	// Iteration counts from 1 in the repetitions around the step, outermost first: "2", "2.1".
	Iteration string         `json:"iteration,omitempty"`
	Line      int            `json:"line,omitempty"`
	Args      map[string]any `json:"args"`
	Start     time.Duration  `json:"start_ns"`    // estimated, from the start of the run
	Duration  time.Duration  `json:"duration_ns"` // estimated
	// Longest is how long a step takes at most that waits for a condition; 0: as long as Duration.
	Longest   time.Duration `json:"longest_ns,omitempty"`
	Rough     bool          `json:"rough,omitempty"`
	Simulates string        `json:"imitated,omitempty"` // what this target only simulates of it
	Starts    *LoadStart    `json:"starts_load,omitempty"`
	Lasting   *Lasting      `json:"lasting,omitempty"` // of a rehearsal: the load that it starts is extended beyond its runtime
}

// LoadStart is the load that a step starts, or the prefill of one.
type LoadStart struct {
	Prefill bool          `json:"prefill,omitempty"`
	Runtime time.Duration `json:"runtime_ns,omitempty"` // set by the step; 0: none
}

// PowerOperation is one node operation.
type PowerOperation struct {
	StepID int    `json:"step_id"`
	Node   string `json:"node"`
	Action string `json:"action"` // "off" or "on"
}

// AssumedBytesPerSecond is the assumed throughput for estimating the duration of size-bound work without better data. It only
// affects the estimate of a plan.
const AssumedBytesPerSecond = 200e6

// Estimate is the estimated duration of the phases.
type Estimate struct {
	Setup    time.Duration `json:"setup_ns"`
	Run      time.Duration `json:"run_ns"`
	Teardown time.Duration `json:"teardown_ns"`
	Total    time.Duration `json:"total_ns"`
	// Longer is how much longer the run takes at most, if steps wait for a condition as long as they may.
	Longer time.Duration `json:"longer_ns,omitempty"`
	// Rough: some steps are bound by size, and the target's throughput was assumed.
	Rough bool `json:"rough,omitempty"`
	// Boots is the basis of the boot times of VMs, if they are part of the estimate.
	Boots string `json:"boots,omitempty"`
}

// Unfit is one reason why a plan does not fit its target.
type Unfit struct {
	Resource string `json:"resource"` // "ram", "cpu", "files", "addresses", "space"
	Subject  string `json:"subject"`  // node, machine or storage
	Message  string `json:"message"`
	Hint     string `json:"hint"`
}

// Group returns the planned group with that name.
func (p *Plan) Group(name string) (Group, bool) {
	for _, g := range p.Groups {
		if g.Name == name {
			return g, true
		}
	}
	return Group{}, false
}

// Engine returns the planned engine of a workload, or of its prefill; zero if there is no such load.
func (p *Plan) Engine(workload string, prefill bool) interval.Engine {
	w, ok := p.Workload(workload)
	switch {
	case ok && prefill && w.Prefill != nil:
		return w.Prefill.Engine
	case ok && !prefill && w.Load != nil:
		return w.Load.Engine
	}
	return interval.Engine{}
}

// Workload returns the planned workload with that name.
func (p *Plan) Workload(name string) (Workload, bool) {
	for _, w := range p.Workloads {
		if w.Name == name {
			return w, true
		}
	}
	return Workload{}, false
}

// OnlyWorkloadOf returns the workload of a group, "" if there is none or more than one.
func (p *Plan) OnlyWorkloadOf(group string) (name string) {
	for _, w := range p.Workloads {
		if w.Group == group && name != "" {
			return ""
		}
		if w.Group == group {
			name = w.Name
		}
	}
	return name
}

// Runtime returns the runtime that a step gives to a start of a workload, 0 if none. Instances count starts from 1, without prefills.
func (p *Plan) Runtime(workload string, instance int) time.Duration {
	for _, s := range p.Steps {
		if s.Workload != workload || s.Starts == nil || s.Starts.Prefill {
			continue
		}
		if instance--; instance == 0 {
			return s.Starts.Runtime
		}
	}
	return 0
}

// Fullest returns the node with most VMs of a group, and their number.
func (p *Plan) Fullest(group string) (node target.Node, vms int) {
	g, _ := p.Group(group)
	for _, n := range p.Target.Nodes {
		here := 0
		for _, vm := range g.VMs {
			if vm.NodeID == n.ID {
				here++
			}
		}
		if here > vms {
			node, vms = n, here
		}
	}
	return node, vms
}

// Scaled converts a number of VMs in the scenario to that in the plan, which differs in a rehearsal.
func (g Group) Scaled(scenarioCount int) int {
	if n, ok := g.Counts[scenarioCount]; ok {
		return n
	}
	return scenarioCount
}

// NodesOffMax returns the maximum number of nodes that are off at the same time when the steps run in order. Parallel branches
// may all switch nodes off before one switches a node on.
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
