package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

const nodeFailure = `name: failure
display_name: Failure
summary: A node is lost and comes back
description: For tests of durations.
tags: [test]
estimated_runtime: 1
vms:
  - db:
      template: ubuntu1604
      vcpus: 1
      ram_mb: 256
      data_disks: {count: 1, size: 1}
      nodes: ":2"
      count_per_node: 1
workloads:
  - Writes:
      vm_group: db
      config_file: writes.fio
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: db}
  - vm_group.PowerOn: {vm_group_name: db}
run:
  - vm_group.CreatePeriodicSnapshots: {vm_group_name: db, num_snapshots: 1, interval_minutes: 0.001}
  - vm_group.MigrateGroup: {vm_group_name: db, from_node: 0, to_node: 1}
  - vm_group.Grow: {vm_group_name: db, count_per_node: 2}
  - nodes.PowerOff: {nodes: 1}
  - nodes.PowerOn: {nodes: 1}
  - vm_group.PowerOn: {vm_group_name: db}
  - workload.Start: {workload_name: Writes, runtime_secs: 2}
`

// TestDurationsAreThoseOfEvents runs a scenario for real and recomputes the durations in the summary from the events
// alone.
func TestDurationsAreThoseOfEvents(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"local", "fake"} {
		folder, runs := t.TempDir(), t.TempDir()
		job, err := os.ReadFile("testdata/tiny/writes.fio")
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{"test.yml": []byte(nodeFailure), "writes.fio": job} {
			if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		outcome, err := runFolder(folder, runs, where, nil)
		if err != nil || outcome.Ended != result.EndedCompleted {
			t.Fatalf("%s: %+v, %v", where, outcome, err)
		}
		b, err := result.Open(outcome.Dir)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		checkDurations(t, where, b)
	}
}

func checkDurations(t *testing.T, where string, b *result.Bundle) {
	t.Helper()
	s, err := b.Summary()
	if err != nil || s.Durations == nil {
		t.Fatalf("%s: no durations (%v)", where, err)
	}
	began, took := map[int]interval.Event{}, map[int]int64{}
	for e, err := range b.Events() {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case interval.EventOperationStarted:
			began[e.OperationID] = e
		case interval.EventOperationEnded:
			took[e.OperationID] = e.AtNanos - began[e.OperationID].AtNanos
		}
	}
	if len(s.Durations.Single) != len(began) {
		t.Errorf("%s: %d operations, the events have %d", where, len(s.Durations.Single), len(began))
	}
	slowest := map[interval.Operation]int64{}
	for _, o := range s.Durations.Single {
		want, ended := took[o.ID]
		if ended != (o.TookNanos != nil) || ended && (*o.TookNanos != want || want < 0 || o.FromNanos != began[o.ID].AtNanos) {
			t.Errorf("%s: operation %+v took %d by its events", where, o, want)
		}
		if ended && o.Subject != "" && o.Error == "" {
			slowest[o.Operation] = max(slowest[o.Operation], want)
		}
	}
	for _, o := range s.Durations.Operations {
		if o.Of != "call" && o.Failed+o.Unwatched+o.Open == 0 && int64(o.Max) != slowest[o.Operation] {
			t.Errorf("%s: the slowest %s took %v, by its events %d", where, o.Operation, o.Max, slowest[o.Operation])
		}
	}
	for _, op := range []interval.Operation{interval.OperationDeploy, interval.OperationClone, interval.OperationBoot, interval.OperationSnapshot,
		interval.OperationMigrate, interval.OperationNodeOff, interval.OperationNodeOn, interval.OperationVMRecovery} {
		if slowest[op] == 0 {
			t.Errorf("%s: no %s was timed", where, op)
		}
	}
	r := s.Durations.Recoveries
	if len(r) != 1 || r[0].VMs == 0 || r[0].Phases[1].AtNanos == nil || r[0].Phases[4].AtNanos == nil || r[0].Phases[5].AtNanos == nil {
		t.Errorf("%s: recoveries %+v", where, r)
	}
}
