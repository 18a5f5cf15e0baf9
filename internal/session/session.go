// Package session takes one run from a scenario to a sealed bundle: it opens the target, manages the agents, owns the
// bundle's writer and the metric store, runs the plan, evaluates the results and seals the bundle. It also cleans up
// after a run whose controller died.
//
//	Order ──Prepare──▶ Prepared (scenario, open target, plan) ──Run──▶ sealed bundle and Outcome
//	runs directory ──Clean──▶ changes of dead runs are undone, their bundles are sealed as aborted
//
// The package prints nothing and handles neither the command line nor reports: a Watcher follows a run.
package session

import (
	"errors"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	loadbuiltin "github.com/braggdev/bragg/internal/load/builtin"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/step"
	"github.com/braggdev/bragg/internal/verb"
)

// Order is the user's request as values: what to run, and where.
type Order struct {
	Source    scenario.Source
	Variables scenario.Options
	Target    string // "local", "local:8", "fake:4" or the path of a target file; "" is local
	Runs      string // the runs directory
	Plan      planner.Options
	Label     string
	// RemoteWrite is the remote store that also receives the samples; none without a URL.
	RemoteWrite metric.RemoteOptions
	Program     Program
}

// Program has the properties of the calling program that a session needs.
type Program struct {
	Version     string
	CommandLine []string // recorded in the manifest
	// AgentCommand starts an agent on this machine; empty: this program with the hidden verb of the agent.
	AgentCommand []string
	// AgentDir is where the agents for other machines lie; "" is the folder of Executable.
	AgentDir   string
	Executable string // this program
	// Leases names the leases of machines that exclude each other; see target.OpenOptions.
	Leases string
	// Generators are those that scenarios may name, and its agents have; nil: all.
	Generators load.Kinds
}

// catalog is what scenarios may use.
func (p *Program) catalog() verb.Catalog {
	c := Catalog()
	if p.Generators != nil {
		c.Generators = p.Generators
	}
	return c
}

// Watcher follows a run in progress. Its methods are called from several goroutines, but never concurrently, and must
// return quickly.
type Watcher interface {
	// Begin is called once, before anything outside is touched: dir is the bundle's folder.
	Begin(p *plan.Plan, dir string)
	Event(e interval.Event)
	// Interval must not keep iv's histograms.
	Interval(iv interval.Interval)
}

// Catalog returns all steps and generators of this program.
func Catalog() verb.Catalog {
	return verb.Catalog{Steps: step.All(), Generators: loadbuiltin.Generators(), CheckQuery: checkQuery}
}

func checkQuery(query, group string) *verb.QueryFault {
	var fault *metric.QueryError
	if !errors.As(metric.CheckQuery(query, group), &fault) {
		return nil
	}
	return &verb.QueryFault{Offset: fault.Offset, Length: fault.Length, Reason: fault.Reason}
}
