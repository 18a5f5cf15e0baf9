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
	"github.com/braggdev/bragg/internal/step/check"
	"github.com/braggdev/bragg/internal/step/storage"
	"github.com/braggdev/bragg/internal/verb"
)

// All lists every step, in the order of the guide.
func All() []verb.Kind {
	return []verb.Kind{
		check.ClusterReady,
		check.ClustersMatch,
		check.HypervisorConnectivity,
		check.NodePowerManagementConnectivity,
		check.OobConfigured,
		check.PrismConnectivity,
		check.PrismDatastoreVisible,
		check.PrismHostInSameCluster,
		check.VCenterConnectivity,
		check.VSphereDatastoreVisible,
		clusterCleanUp,
		clusterDeleteCurieVMs,
		clusterPowerOffCurieVMs,
		storage.ContainerSetProperties,
		experimentalShell,
		experimentalWaitOplogEmpty,
		metaParallel,
		metaRepeat,
		metaRollingUpgrade,
		nodesEnterMaintenance,
		nodesExitMaintenance,
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
		groupCreateSnapshot,
		groupDisableHA,
		groupEnableHA,
		groupGrow,
		groupMigrateGroup,
		groupPowerOff,
		groupPowerOn,
		groupRelocateGroupDatastore,
		groupRevertToSnapshot,
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
