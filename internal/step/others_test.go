package step_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/target"
)

const cleanUpOnly = `name: example
display_name: Example
summary: Cleans up
description: Nothing to see
tags: [test]
estimated_runtime: 1
vms:
  - Workers: {template: ubuntu1604, data_disks: {count: 1, size: 1}, count_per_node: 1}
workloads: []
results: []
setup:
  - cluster.CleanUp: {}
  - vm_group.CloneFromTemplate: {vm_group_name: Workers}
run:
  - nodes.PowerOff: {nodes: 0}
teardown:
  - cluster.CleanUp: {}
`

// TestCleanUpTellsWhatItLeftAlone: a clean-up removes and powers on what is the run's own, and names everything else with the
// reason.
func TestCleanUpTellsWhatItLeftAlone(t *testing.T) {
	l := newLab(t, 3)
	foreign := target.Tag{Controller: "c", Run: "theirs", Nonce: strings.Repeat("ab", 16)}
	var specs []target.VMSpec
	for i := range 23 {
		specs = append(specs, target.VMSpec{Name: fmt.Sprintf("web-%02d\x1b[2J%s", i, strings.Repeat("y", 10_000)), Group: "web", NodeID: "node-3", Template: "x"})
	}
	if _, err := l.Fake.Create(t.Context(), foreign, specs); err != nil {
		t.Fatal(err)
	}
	if err := l.Fake.PowerOffNode(t.Context(), "node-2"); err != nil {
		t.Fatal(err)
	}
	sc := parse(t, strings.Replace(cleanUpOnly, "count_per_node: 1", `nodes: "0", count_per_node: 1`, 1))
	state := target.PowerUnknown
	watch := func(c *executor.Config, _ *target.Inventory) {
		note := c.Events
		c.Events = func(e interval.Event) {
			if e.Kind == interval.EventRunEnded { // its owner comes back
				state, _ = l.Fake.NodePowerState(context.Background(), "node-2")
				_ = l.Fake.PowerOnNode(context.Background(), "node-2")
			}
			note(e)
		}
	}
	if outcome := l.run(sc, planner.Options{}, watch); outcome.Ended != executor.Completed || len(outcome.Problems)+len(outcome.Left) > 0 {
		t.Fatal(outcome)
	}
	var left []string
	for _, e := range l.Events {
		if e.Kind == interval.EventLog && e.Phase == "teardown" && e.Step == "cluster.CleanUp" {
			left = append(left, e.Message)
		}
	}
	for _, want := range []string{`skipped: VM "web-00\x1b[2J` + strings.Repeat("y", 89) + `…" on node-3: it belongs to another run`, "skipped: 3 more of kind VM",
		`skipped: node "node-2": it is powered off, and this run did not do that`} {
		if !slices.Contains(left, want) {
			t.Errorf("%q is not reported, only %q", want, left)
		}
	}
	if strings.Contains(strings.Join(left, "\n"), "Workers") || strings.Contains(strings.Join(left, "\n"), "node-1") {
		t.Errorf("the run's own objects are reported as foreign: %q", left)
	}
	if state != target.PowerOff {
		t.Errorf("the node that was switched off externally is %s at the end", state)
	}
	if vms, err := l.Fake.Owned(t.Context(), foreign); err != nil || len(vms) != len(specs) {
		t.Errorf("%d VMs of another run are left, %v", len(vms), err)
	}
}

// mute is a target that does not tell what else is on it.
type mute struct{ target.Target }

func (mute) Others(context.Context, target.Tag) ([]target.Other, error) {
	return []target.Other{{Kind: target.OtherVolume, Name: "v", Why: "w"}}, errors.New("host-2 does not answer")
}

// A failed listing of foreign objects does not fail a cleanup, and is reported.
func TestCleanUpWithoutSight(t *testing.T) {
	l := newLab(t, 1)
	outcome := l.run(parse(t, strings.Replace(cleanUpOnly, "nodes.PowerOff: {nodes: 0}", "test.Wait: {duration_secs: 0.01}", 1)), planner.Options{},
		func(c *executor.Config, _ *target.Inventory) { c.Target = mute{c.Target} })
	if outcome.Ended != executor.Completed || len(outcome.Problems) > 0 {
		t.Fatal(outcome)
	}
	var text strings.Builder
	for _, e := range l.Events {
		text.WriteString(e.Message + "\n")
	}
	for _, want := range []string{"could not be listed completely: host-2 does not answer", `skipped: volume "v": w`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not reported:\n%s", want, text.String())
		}
	}
}
