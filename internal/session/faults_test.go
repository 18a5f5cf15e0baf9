package session_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
)

// TestFaultsComeTogether: a fault of the document does not hide faults of its steps, generators and thresholds, nor
// missing capabilities of the target.
func TestFaultsComeTogether(t *testing.T) {
	const text = `name: faults
display_name: Faults
summary: Everything at once
description: Nothing to see
estimated_runtime: 60
vms:
  - Workers: {template: ubuntu1604, data_disks: {count: 1, size: 1}}
workloads:
  - Load: {vm_group: Workers, config_file: load.fio, generator: nope}
  - Other: {vm_group: Workers, config_file: load.fio, options: {bakend: psync}}
results:
  - Rate: {workload_name: Load, result_type: iops, aggregat: sum, expect: [{that: mean > 1, window: no such window}]}
  - Query: {query: "sum(rate(nothing[5s])", vm_group: Workers}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: Workers}
run:
  - test.Wait: {duration_secs: -1}
  - nodes.PowerOff: {nodes: "99"}
`
	files := fstest.MapFS{"test.yml": {Data: []byte(text)}, "load.fio": {Data: []byte("[a]\nfilename=/dev/sdb\nrw=read\n")}}
	_, err := session.Prepare(t.Context(), session.Order{Target: "fake:4", Runs: t.TempDir(),
		Source: scenario.Source{FS: files, Name: "faults", Trusted: true}})
	var list *diag.ListError
	if !errors.As(err, &list) {
		t.Fatal(err)
	}
	for _, code := range []string{"unknown-generator", "bad-workload", "unknown-key", "unknown-window", "argument-range", "node-range", "bad-query"} {
		if !slices.ContainsFunc(list.List, func(d diag.Diagnostic) bool { return d.Code == code && d.Source != "" }) {
			t.Errorf("%s is missing or shows no line in: %v", code, err)
		}
	}
	for _, d := range list.List {
		if d.Code == "bad-query" && (d.Source == "" || !strings.HasPrefix(d.Source[d.Pos.Column-1:], `", vm_group`)) {
			t.Errorf("the caret is at column %d of %q", d.Pos.Column, d.Source)
		}
	}
}
