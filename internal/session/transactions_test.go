package session_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/lint"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
)

const transactions = `name: transactions
display_name: Transactions
summary: A load that does no I/O
description: For tests of generators that name their own operations and gauges.
tags: [test]
estimated_runtime: 8
vms:
  - db: {template: ubuntu1604, vcpus: 1, ram_mb: 256, data_disks: {count: 1, size: 1}, nodes: ":2", count_per_node: 1}
workloads:
  - TPC: {vm_group: db, generator: simdb, options: {connections: 16}}
results:
  - Transactions: {workload_name: TPC, result_type: iops, aggregate: sum, expect: mean >= 100}
  - Time: {workload_name: TPC, result_type: latency, aggregate: mean}
  - New orders: {query: 'sum by (operation) (rate(bragg_operations_total{operation="new-order"}[4s]))'}
  - Buffer: {query: 'avg by (gauge, unit) (bragg_load_gauge{gauge="buffer hits"})'}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: db}
  - vm_group.PowerOn: {vm_group_name: db}
  - workload.PrefillRun: {workload_name: TPC}
run:
  - workload.Start: {workload_name: TPC, runtime_secs: 8, async: True}
  - test.Wait: {duration_secs: 4}
  - vm_group.CreatePeriodicSnapshots: {vm_group_name: db, num_snapshots: 1, interval_minutes: 0.001}
  - workload.Wait: {workload_name: TPC}
teardown:
  - cluster.CleanUp: {}
`

// A generator that counts transactions and has a gauge is linted, run, charted, windowed and compared like any other.
func TestGeneratorWithoutIO(t *testing.T) {
	t.Parallel()
	source := scenario.Source{Name: "transactions", Trusted: true, FS: fstest.MapFS{"test.yml": {Data: []byte(transactions)}}}
	sc, err := scenario.Load(t.Context(), source, scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	catalog := session.Catalog()
	catalog.Generators = generators()
	if found := lint.Check(sc, catalog); len(found) > 0 {
		t.Errorf("lint: %+v", found)
	}
	var runs []*document.Run
	for range 2 {
		dir := t.TempDir()
		order := session.Order{Source: source, Runs: dir, Target: "local", Plan: planner.Options{FullPercentMax: 100}, Program: program(dir)}
		order.Program.Generators = generators()
		runs = append(runs, carryOut(t, order))
	}
	checkTransactions(t, runs[0])
	c, err := compare.Runs(runs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range c.Loads[slices.IndexFunc(c.Loads, func(l compare.Load) bool { return l.Workload == "TPC" })].Figures {
		names = append(names, f.Name+" "+f.Unit)
	}
	for _, want := range []string{"operations per second operations/s", "buffer hits %", "new-order service time, p99 ns"} {
		if !slices.Contains(names, want) {
			t.Errorf("the comparison lacks %q: %q", want, names)
		}
	}
	var html, text bytes.Buffer
	if err := page.HTML(&html, runs[0]); err != nil {
		t.Error(err)
	}
	if err := report.Terminal(&text, runs[0], 120, false); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"new-order", "buffer hits", "no database answers"} {
		if !strings.Contains(html.String(), want) || !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

func carryOut(t *testing.T, order session.Order) *document.Run {
	t.Helper()
	p, err := session.Prepare(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, err := p.Run(context.WithoutCancel(t.Context()), session.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(out.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	r, err := document.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func checkTransactions(t *testing.T, r *document.Run) {
	t.Helper()
	s := r.Summary
	if s.Ended != result.EndedCompleted || s.Verdict == result.Failed {
		t.Errorf("ended %s, %s: %s", s.Ended, s.Verdict, s.Reason)
	}
	for _, f := range s.Findings {
		if f.Severity == finding.Fail || f.Severity == finding.Undecided || f.Code == "cache-suspected" || f.Code == "engine-fallback" {
			t.Errorf("finding %+v", f)
		}
	}
	for _, e := range s.Results {
		if e.Missing != "" || len(e.Series) == 0 || len(e.Series[0].Points) < 4 {
			t.Errorf("%q is not charted: %q, %d series", e.Name, e.Missing, len(e.Series))
		}
		windows := map[string]bool{}
		for _, row := range e.Stats {
			windows[row.Window] = true
		}
		if len(windows) < 3 {
			t.Errorf("%q has the windows %v", e.Name, windows)
		}
	}
	last := s.Results[len(s.Results)-1]
	if last.Name != "TPC: connections" || len(last.Stats) == 0 || last.Stats[0].Mean != 16 {
		t.Errorf("the last result is %q: %+v", last.Name, last.Stats)
	}
	if unit := s.Results[0].Unit; unit != "operations/s" {
		t.Errorf("transactions are in %q", unit)
	}
	for i := range s.Loads {
		l := &s.Loads[i]
		if l.Engine().Operation(0) != "new-order" || l.Directions[0].Operations == 0 || l.Directions[3].Operations == 0 || len(l.Gauges) != 2 {
			t.Errorf("load %+v", l)
		} else if g := l.Gauges[0]; g.Name != "buffer hits" || g.Mean < 90 || g.Mean > 99 || g.Min > g.Mean || g.Max < g.Mean {
			t.Errorf("gauge %+v", g)
		}
	}
}
