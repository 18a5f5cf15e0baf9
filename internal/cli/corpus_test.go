package cli_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/testreq"
)

// corpusChosen are the public scenarios that every test run rehearses, each of another kind. BRAGG_CORPUS=all, which
// `make corpus` sets, rehearses all.
var corpusChosen = []string{
	"nutanix/four_corners_microbenchmark",  // fixed corners
	"nutanix/database_colocation_standard", // two groups, Poisson rates, strided zones
	"nutanix/snapshot_impact_standard",     // snapshots under load
	"nutanix/sequential_node_failure",      // node power
	"nutanix/clone_impact_linked",          // growth by clones
	"nutanix/vdi_simulator_task_25",        // many VMs at fixed rates
	"garyjlittle/single-vm-scale",          // loops, results by PromQL
	"garyjlittle/ILM Upmigrate",            // size-bound loads
	"garyjlittle/large-random-ingest",      // a run phase of a fraction of a second
}

// corpusCount is how many public scenarios there are.
const corpusCount = 39

// corpusScenarios lists the folders of the corpus as "author/name".
func corpusScenarios(t *testing.T) (root string, names []string) {
	t.Helper()
	root = testreq.Corpus(t, "xray")
	documents, err := filepath.Glob(filepath.Join(root, "*", "*", "test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents {
		name, err := filepath.Rel(root, filepath.Dir(d))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if len(names) < corpusCount {
		t.Fatalf("the corpus has %d scenarios, want at least %d", len(names), corpusCount)
	}
	return root, names
}

// TestCorpusPlans wants that lint finds no error in any public scenario, and a plan of each on a simulated cluster of
// four nodes.
func TestCorpusPlans(t *testing.T) {
	root, names := corpusScenarios(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if code, said, _ := inProcess(t, "lint", filepath.Join(root, name)); code != 0 {
				t.Errorf("lint: exit code %d\n%s", code, said)
			}
			code, stdout, stderr := inProcess(t, "plan", filepath.Join(root, name), "--target", "fake:4", "--json")
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			var plan struct {
				Steps     []struct{ Name string }
				Workloads []struct{ Name string }
			}
			if err := json.Unmarshal([]byte(stdout), &plan); err != nil || len(plan.Steps) == 0 {
				t.Errorf("%d steps, %v", len(plan.Steps), err)
			}
		})
	}
}

// TestCorpusRehearses runs public scenarios on this machine and wants data in every result.
func TestCorpusRehearses(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	root, names := corpusScenarios(t)
	for _, name := range names {
		if runsPrograms(t, filepath.Join(root, name)) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(corpusChosen, name) {
				testreq.Soak(t, "BRAGG_CORPUS", "a public scenario of a kind that another one has")
			}
			t.Parallel()
			rehearse(t, filepath.Join(root, name))
		})
	}
}

// runsPrograms reports whether a scenario needs a playbook or a shell, which the local target does not offer.
func runsPrograms(t *testing.T, dir string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc([]string{"playbook.Run", "experimental.Shell", "vm_group.RunCommand"}, func(step string) bool {
		return strings.Contains(string(text), step)
	})
}

func rehearse(t *testing.T, dir string) {
	runs := filepath.Join(t.TempDir(), "runs")
	b := startBragg(t, nil, "run", dir, "--rehearse", "30s", "--rehearse-size", "256MiB", "--max-full", "100", "--runs", runs)
	code := b.exitCode(t)
	all, err := result.List(runs)
	if err != nil || len(all) != 1 || all[0].State != result.StateSealed {
		t.Fatalf("exit code %d, bundles %+v, %v\n%s", code, all, err, b.out.String())
	}
	s := summaryOf(t, all[0].Dir)
	if s.Ended != result.EndedCompleted {
		t.Fatalf("ended %s: %s\n%s", s.Ended, s.Reason, b.out.String())
	}
	for _, r := range s.Results {
		if n := pointsOf(r); r.Missing != "" || n == 0 {
			t.Errorf("result %q has %d points: %s", r.Name, n, r.Missing)
		}
	}
	if _, err := os.Stat(filepath.Join(all[0].Dir, "report.html")); errors.Is(err, fs.ErrNotExist) {
		t.Error("there is no report")
	}
	checkNothingLeft(t, runs, b.out.String())
}

// pointsOf counts the points of a result that have a value.
func pointsOf(r result.Evaluated) int {
	n := 0
	for _, s := range r.Series {
		for _, p := range s.Points {
			if !math.IsNaN(p.Value) {
				n++
			}
		}
	}
	return n
}
