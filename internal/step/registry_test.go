package step_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unicode"

	"github.com/braggdev/bragg/internal/executor"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/step"
	"github.com/braggdev/bragg/internal/verb"
)

// union is every step of the public scenarios and of X-Ray's open engine, and what extends its language.
const union = `check.ClusterReady check.ClustersMatch check.HypervisorConnectivity check.NodePowerManagementConnectivity
check.OobConfigured check.PrismConnectivity check.PrismDatastoreVisible check.PrismHostInSameCluster
check.VCenterConnectivity check.VSphereDatastoreVisible cluster.CleanUp cluster.DeleteCurieVMs cluster.PowerOffCurieVMs
container.SetProperties experimental.Shell experimental.WaitOplogEmpty meta.Parallel meta.Repeat meta.RollingUpgrade nodes.EnterMaintenance nodes.ExitMaintenance nodes.PowerOff nodes.PowerOn nodes.Shutdown
nodes.WaitForPowerOff nodes.WaitForPowerOn playbook.Run test.CollectCurieVMLogs test.Wait vm_group.CloneFromTemplate
vm_group.CreatePeriodicSnapshots vm_group.CreateSnapshot vm_group.DisableHA vm_group.EnableHA vm_group.Grow vm_group.MigrateGroup
vm_group.PowerOff vm_group.PowerOn vm_group.RelocateGroupDatastore vm_group.ResetGroupPlacement vm_group.RevertToSnapshot vm_group.RunCommand
vm_group.WaitForPowerOn workload.PrefillRun workload.PrefillStart workload.PrefillWait workload.Start workload.Stop
workload.Wait`

func TestAllStepsAreThere(t *testing.T) {
	if got := (verb.Catalog{Steps: step.All()}).StepNames(); !slices.Equal(got, strings.Fields(union)) {
		t.Errorf("steps %q", got)
	}
}

// TestRegistry demands of every kind what a newcomer needs: a summary, documentation, described arguments, and an
// example that parses, compiles and runs on the fake target.
func TestRegistry(t *testing.T) {
	for _, k := range step.All() {
		t.Run(k.Name, func(t *testing.T) {
			checkTexts(t, k)
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 3)
				outcome := l.run(parse(t, k.Example), planner.Options{}, nil)
				if outcome.Ended != executor.Completed || len(outcome.Problems) > 0 || len(outcome.Left) > 0 {
					t.Errorf("the example ended with %+v", outcome)
				}
			})
		})
	}
}

func checkTexts(t *testing.T, k verb.Kind) {
	t.Helper()
	if !strings.HasSuffix(k.Summary, ".") || strings.Count(k.Summary, ".") != 1 || !unicode.IsUpper([]rune(k.Summary)[0]) {
		t.Errorf("summary %q is not one sentence", k.Summary)
	}
	if !strings.HasSuffix(k.Doc, ".") {
		t.Errorf("documentation %q", k.Doc)
	}
	if !strings.Contains(k.Example, "- "+k.Name+":") {
		t.Errorf("the example does not use the step")
	}
	for _, a := range k.Arguments() {
		if !strings.HasSuffix(a.Doc, ".") {
			t.Errorf("argument %s is described by %q", a.Name, a.Doc)
		}
		if a.Required && a.Default != "" {
			t.Errorf("argument %s is required and has a default", a.Name)
		}
	}
}
