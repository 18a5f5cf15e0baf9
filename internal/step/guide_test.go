package step_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/planner/plannertest"
	"github.com/braggdev/bragg/internal/step"
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	targets "github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/verb"
)

var update = flag.Bool("update", false, "rewrite goldens")

// TestGuide keeps docs/guides/steps.md, which is written from the catalog.
func TestGuide(t *testing.T) {
	path := filepath.Join(testreq.RepositoryRoot(t), "docs", "guides", "steps.md")
	got := guide(t)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, got, 0o644)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Error("docs/guides/steps.md is not what the catalog says; rewrite it: go test ./internal/step -run Guide -update")
	}
}

func guide(t *testing.T) string {
	var b bytes.Buffer
	b.WriteString(guideHead)
	b.WriteString("\n| step | on the local target |\n|---|---|\n")
	for _, k := range step.All() {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", k.Name, anchor(k.Name), onLocal(t, k))
	}
	start, _ := (verb.Catalog{Steps: step.All()}).Kind("workload.Start")
	head, _, _ := strings.Cut(start.Example, "\nsetup:")
	fmt.Fprintf(&b, guideMiddle, head, example.Job, example.Playbook)
	for _, k := range step.All() {
		describeKind(&b, k)
	}
	return b.String()
}

const guideHead = `# Steps

What a scenario can do in its phases ` + "`setup`, `run` and `teardown`" + `. Names, arguments and defaults are X-Ray's;
where X-Ray's code and its documents differ, its code is authoritative. This page is generated from the program's catalog of steps.

## Real or simulated

On the local target a VM is an agent process with its own disk files, and a node is a name. Loads do real I/O. Operations on
nodes, and those that need a hypervisor, are simulated as far as one machine can; plan and report mark them:
`

const guideMiddle = `
A plan with a step that the target does not offer is refused, with the line of the step, before anything is changed. Steps
that run programs of the scenario also need ` + "`--allow-shell`" + `.

What steps changed is undone at the end of a run, also after a failure or a stop, and by ` + "`bragg clean`" + ` after a crash: nodes
that the run powered off are powered on first, then the VMs of the run are deleted.

## The examples

Each step below has an example: the phases of a scenario. The rest of its ` + "`test.yml`" + ` is

` + "```yaml\n%s```" + `

and the job file ` + "`load.fio`" + ` in the same folder is

` + "```ini\n%s```" + `

Where no step uses ` + "`Load`" + `, it has ` + "`workloads: []` and `results: []`" + `, and where playbook.Run runs ` + "`site.yml`" + `, that is

` + "```yaml\n%s```" + `

` + "`bragg schema STEP`" + ` prints a step with its whole ` + "`test.yml`" + `.
`

func anchor(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, ".", ""))
}

// onLocal says in one cell what the local target makes of a step.
func onLocal(t *testing.T, k verb.Kind) string {
	t.Helper()
	tgt, err := targets.Open(t.Context(), "local:3", target.OpenOptions{Dir: filepath.Join(t.TempDir(), "vms")})
	if err != nil {
		t.Fatal(err)
	}
	defer tgt.Close()
	inventory, err := tgt.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	catalog := verb.Catalog{Steps: step.All(), Generators: load.Kinds{{Name: "native", Generator: plannertest.Plain{}, JobFiles: true}}}
	if k.Name == "experimental.Shell" {
		return "real, with `--allow-shell` only"
	}
	plan, err := planner.Compile(parse(t, k.Example), inventory, target.Capabilities(tgt), catalog, planner.Options{AllowShell: true})
	if err != nil {
		if code := diag.ExitCode(err); code != diag.ExitUnavailable {
			t.Fatalf("%s on the local target: exit code %d\n%s", k.Name, code, describe(t, err))
		}
		return "not offered"
	}
	var simulated []string
	for _, s := range plan.Steps {
		if (s.Name == k.Name || s.Within == k.Name) && s.Simulates != "" && !slices.Contains(simulated, s.Simulates) {
			simulated = append(simulated, s.Simulates)
		}
	}
	if len(simulated) > 0 {
		return "simulated: " + strings.ReplaceAll(strings.Join(simulated, "; "), "simulated nodes: ", "")
	}
	return "real"
}

func describeKind(b *bytes.Buffer, k verb.Kind) {
	fmt.Fprintf(b, "\n## %s\n\n%s %s\n", k.Name, k.Summary, strings.ReplaceAll(k.Doc, "_", "\\_"))
	if len(k.Needs) > 0 {
		var needs []string
		for _, n := range k.Needs {
			needs = append(needs, "`"+string(n)+"`")
		}
		fmt.Fprintf(b, "\nThe target must offer %s.\n", strings.Join(needs, " and "))
	}
	b.WriteString("\n| argument | type | default | |\n|---|---|---|---|\n")
	for _, a := range k.Arguments() {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", a.Name, a.Type, defaultText(a), strings.ReplaceAll(a.Doc, "|", "\\|"))
	}
	_, phases, _ := strings.Cut(k.Example, "\nsetup:")
	fmt.Fprintf(b, "\n```yaml\nsetup:%s```\n", phases)
}

func defaultText(a verb.Argument) string {
	switch {
	case a.Required:
		return "required"
	case a.Default == "":
		return "–"
	case a.Type == "yes/no":
		return map[string]string{"true": "`True`", "false": "`False`"}[a.Default]
	}
	return "`" + a.Default + "`"
}
