// Package plannertest has a small scenario and a catalog whose generators only plan, for tests of packages that make or run
// plans.
package plannertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/step"
	"github.com/braggdev/bragg/internal/verb"
)

// Head is the beginning of most scenarios: one group of one VM per node, and one workload.
const Head = `name: lab
display_name: Lab
summary: A scenario of the tests
description: Nothing to see
tags: [test]
estimated_runtime: 60
vms:
  - Workers:
      template: ubuntu1604
      data_disks: {count: 2, size: 1}
      count_per_node: 1
workloads:
  - Load:
      vm_group: Workers
      config_file: load.fio
  - Other:
      vm_group: Workers
      config_file: load.fio
results: []
`

// Deployed is a setup phase that deploys the group.
const Deployed = `setup:
  - vm_group.CloneFromTemplate: {vm_group_name: Workers}
  - vm_group.PowerOn: {vm_group_name: Workers}
`

// Load parses a scenario.
func Load(t testing.TB, text string) *scenario.Scenario {
	t.Helper()
	files := fstest.MapFS{"test.yml": {Data: []byte(text)}, "load.fio": {Data: []byte("[disk0]\nfilename=/dev/sdb\nsize=64m\n")}}
	sc, err := scenario.Load(context.Background(), scenario.Source{FS: files, Name: "lab", Trusted: true}, scenario.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return sc
}

// Plain is a generator that plans any workload as the first 64 MiB of each device, scaled; a prefill writes them once.
type Plain struct {
	Needs []load.Need // programs on the VM
}

func (g Plain) Plan(w load.Workload) (load.Plan, error) {
	const block = 8192
	p := load.Plan{Engine: interval.Engine{Name: "plain", Loop: interval.LoopClosed}, Command: fmt.Sprintf("fio %s --runtime=%s", w.ConfigName, w.Runtime), BlockBytesMax: block, BytesWritten: -1,
		Jobs: []load.JobPlan{{Name: "disk0", Pattern: "randread", BlockSizes: "8k", QueueDepth: 4, SizeBytes: 64 << 20, Clones: 1}}}
	length := int64(64 << 20)
	if w.Scale.Factor > 0 {
		p.ScaledFrom = length
		length = max(int64(float64(length)*w.Scale.Factor)/block, int64(w.Scale.BlocksMin)) * block
	}
	if len(g.Needs) > 0 {
		p.Program = &load.ProgramPlan{Needs: g.Needs}
	}
	var total int64
	for _, d := range w.Devices {
		p.Extents = append(p.Extents, extent.Extent{Device: d.Name, Length: length, Writes: w.Prefill})
		total += length
	}
	if w.Prefill {
		p.BytesWritten, p.Notes = total, []string{"depth " + w.Options[verb.OptionPrefillDepth]}
	}
	return p, nil
}

func (Plain) Prepare(context.Context, load.Workload) (load.Instance, error) {
	return nil, errors.New("plans only")
}

// Catalog has all steps, and generators that only plan.
func Catalog() verb.Catalog {
	return verb.Catalog{Steps: step.All(), Generators: load.Kinds{{Name: "native", Generator: Plain{}, JobFiles: true}, {Name: "fio", Generator: Plain{}, JobFiles: true}, {Name: "transactions", Generator: Plain{}},
		{Name: "programs", Generator: Plain{Needs: []load.Need{{Program: "pgbench", Oldest: "13", Packages: []load.Package{{Family: load.Debian, Name: "postgresql"}}},
			{Program: "psql", Packages: []load.Package{{Family: load.SUSE, Name: "p"}, {Family: load.Debian, Name: "postgresql"}}},
			{Program: "mkfs.xfs", Packages: []load.Package{{Family: load.Debian, Name: "xfsprogs"}}}}}}}}
}
