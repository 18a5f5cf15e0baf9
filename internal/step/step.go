// Package step holds the verbs of scenarios, one file each, and their list.
//
// A step is a struct whose exported fields are its arguments, with X-Ray's names and defaults, and one method that runs. It acts
// only through verb.Env, which journals what it creates or switches and reverts it at the end.
//
//	All() ──▶ verb.Catalog ──▶ planner.Compile binds ──▶ Step.Run
//
// To add a step: one file with a Kind, one line in All.
package step

import (
	"fmt"

	"github.com/braggdev/bragg/internal/verb"
)

// All lists every step, in the order of the guide.
func All() []verb.Kind {
	return []verb.Kind{
		checkClusterReady,
		checkClustersMatch,
		checkHypervisorConnectivity,
		checkNodePowerManagementConnectivity,
		checkOobConfigured,
		checkPrismConnectivity,
		checkPrismDatastoreVisible,
		checkPrismHostInSameCluster,
		checkVCenterConnectivity,
		checkVSphereDatastoreVisible,
		clusterCleanUp,
		clusterDeleteCurieVMs,
		clusterPowerOffCurieVMs,
		experimentalShell,
		experimentalWaitOplogEmpty,
		metaParallel,
		metaRepeat,
		metaRollingUpgrade,
		nodesPowerOff,
		nodesPowerOn,
		nodesShutdown,
		nodesWaitForPowerOff,
		nodesWaitForPowerOn,
		playbookRun,
		testCollectCurieVMLogs,
		testWait,
		groupCloneFromTemplate,
		groupCreatePeriodicSnapshots,
		groupDisableHA,
		groupEnableHA,
		groupGrow,
		groupMigrateGroup,
		groupPowerOff,
		groupPowerOn,
		groupRelocateGroupDatastore,
		groupResetGroupPlacement,
		groupRunCommand,
		groupWaitForPowerOn,
		workloadPrefillRun,
		workloadPrefillStart,
		workloadPrefillWait,
		workloadStart,
		workloadStop,
		workloadWait,
	}
}

// annotate adds an annotation to charts if the scenario requests it.
func annotate(env *verb.Env, on bool, format string, args ...any) {
	if on {
		env.Notes.Annotate(fmt.Sprintf(format, args...))
	}
}
