package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/lab/vcsim"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/session"
)

const onVCenter = `
name: counted
display_name: Counted
summary: One load
description: For a test of sources.
tags: [test]
estimated_runtime: 1
vms: [{db: {template: linux, vcpus: 1, ram_mb: 256, data_disks: {count: 1, size: 1}, nodes: "0", count_per_node: 1}}]
workloads: [{TPC: {vm_group: db, generator: simdb, options: {connections: 16}}}]
results: [{Transactions: {vm_group: db, result_type: iops}}]
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: db}
  - vm_group.PowerOn: {vm_group_name: db}
run:
  - workload.Start: {workload_name: TPC, runtime_secs: 2}
`

// On a vCenter, a source of the same vCenter needs no address: its counters have the labels of the run's VMs and nodes, whatever the platform
// calls them. Those of VMs that are not of the run are not recorded.
func TestSourceOfTheVCenterOfTheTarget(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	vcenter, err := vcsim.Start(vcsim.Options{Dir: t.TempDir(), Agent: []string{self, "__agent"}, Hosts: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vcenter.Close)
	dir := t.TempDir()
	text, err := vcenter.TargetFile(dir, "sources: [{name: vc, kind: vsphere, interval: 1s}]\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"target.yml": text, "s/test.yml": onVCenter} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runs := t.TempDir()
	mine := program(runs)
	mine.Generators = generators()
	p, err := session.Prepare(t.Context(), session.Order{Source: scenario.Source{Path: filepath.Join(dir, "s"), Trusted: true}, Runs: runs,
		Target: filepath.Join(dir, "target.yml"), Plan: planner.Options{FullPercentMax: 100}, Program: mine})
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := p.Run(t.Context(), session.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := result.Open(outcome.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	hosts, vms := map[string]bool{}, map[string]bool{}
	for s, err := range b.Samples() {
		switch {
		case err != nil:
			t.Fatal(err)
		case s.Name != collect.CPUUsage || s.Labels["source"] != "vc":
		case s.Labels["object"] == "host":
			hosts[s.Labels["node"]] = true
		default:
			vms[s.Labels["vm"]+" of "+s.Labels["vm_group"]+" on "+s.Labels["node"]] = true
			if s.Labels["exported_vm"] != "" || !strings.HasPrefix(s.Labels["name"], "bragg-db-0001-") {
				t.Errorf("labels %v", s.Labels)
			}
		}
	}
	nodes := b.Manifest().Target.Nodes
	if len(nodes) != 2 || len(hosts) != 2 || !hosts[nodes[0].ID] || len(vms) != 1 || !vms["db-0001 of db on "+nodes[0].ID] {
		t.Errorf("nodes %v, hosts %v, VMs %v; %s", nodes, hosts, vms, outcome.Reason)
	}
}
