package lint_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/braggdev/bragg/internal/lint"
	"github.com/braggdev/bragg/internal/scenario"
)

// TestEstimatedRuntimeOfBlocks: of branches that run at once the longest counts, and a repetition counts as often as it runs.
func TestEstimatedRuntimeOfBlocks(t *testing.T) {
	const wait = "        - test.Wait: {duration_secs: 1000}\n"
	const branches = "  - meta.Parallel:\n      branches:\n" +
		"        - - workload.Start: {workload_name: Load, runtime_secs: 1000}\n          - test.Wait: {duration_secs: 200}\n" +
		"        - - test.Wait: {duration_secs: 900}\n        - - test.Wait: {duration_secs: 1000}\n"
	for name, c := range map[string]struct {
		steps string
		takes int // seconds at least
	}{
		"branches":             {branches, 1200},
		"branches and more":    {branches + "  - test.Wait: {duration_secs: 1000}\n", 2200},
		"staggered, one VM":    {"  - workload.Start: {workload_name: Load, runtime_secs: 1000, stagger_secs: 900}\n", 1000},
		"counted":              {"  - meta.Repeat:\n      count: 3\n      steps:\n" + wait, 3000},
		"timed":                {"  - meta.Repeat:\n      duration_secs: 2500\n      steps:\n" + wait, 3000},
		"timed, one is longer": {"  - meta.Repeat:\n      duration_secs: 100\n      steps:\n" + wait, 1000},
		"counted and timed":    {"  - meta.Repeat:\n      count: 2\n      duration_secs: 9000\n      steps:\n" + wait, 2000},
		"branches, repeated":   {"  - meta.Repeat:\n      count: 2\n      steps:\n" + "      " + strings.ReplaceAll(strings.TrimSuffix(branches, "\n"), "\n", "\n      ") + "\n", 2400},
	} {
		head := blocksHead
		if strings.HasSuffix(name, "one VM") {
			head = strings.Replace(head, "size: 8}", "size: 8}\n      count_per_cluster: 1", 1)
		}
		t.Run(name, func(t *testing.T) {
			for said, want := range map[int]bool{c.takes: false, c.takes * 91 / 100: false, c.takes * 89 / 100: true, 4*c.takes + 9*3600: true} {
				text := strings.Replace(head, "SAID", fmt.Sprint(said), 1) + c.steps
				fsys := fstest.MapFS{"test.yml": {Data: []byte(text)}, "read.fio": {Data: []byte(files["read.fio"])}}
				sc, err := scenario.Load(t.Context(), scenario.Source{FS: fsys, Name: "example", Trusted: true}, scenario.Options{})
				if err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				found := ""
				for _, f := range lint.Check(sc, catalog) {
					if f.Code == "estimated-runtime" {
						found = f.Claim
					}
				}
				if (found != "") != want {
					t.Errorf("estimated_runtime of %d s where steps take %d s: found %q", said, c.takes, found)
				}
			}
		})
	}
}

const blocksHead = `name: example
display_name: Example
summary: steps in steps
description: text
estimated_runtime: SAID
vms:
  - Workers:
      template: ubuntu1604
      data_disks: {count: 1, size: 8}
workloads:
  - Load: {vm_group: Workers, config_file: read.fio}
results:
  - Rate: {vm_group: Workers, result_type: iops}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: Workers}
run:
`
