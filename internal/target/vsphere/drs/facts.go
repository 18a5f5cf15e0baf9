package drs

import (
	"cmp"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
)

// Facts describes DRS, HA and DPM of a cluster, and what keeps VMs where they are placed.
func Facts(c *types.ClusterConfigInfoEx) []target.Fact {
	facts := []target.Fact{
		{Name: "DRS of the cluster", Value: drsText(c)}, {Name: "placement of VMs", Value: placement(c)}, {Name: "HA of the cluster", Value: haText(c)},
	}
	if c.DpmConfigInfo != nil && on(c.DpmConfigInfo.Enabled) {
		facts = append(facts, target.Fact{Name: "DPM of the cluster", Value: "on: hosts without VMs may be put in standby during runs"})
	}
	return facts
}

// HAOn reports whether HA is on.
func HAOn(c *types.ClusterConfigInfoEx) bool { return on(c.DasConfig.Enabled) }

func on(flag *bool) bool { return flag != nil && *flag }

// ignoring reports whether DRS moves VMs and the cluster does not let single VMs be excluded.
func ignoring(c *types.ClusterConfigInfoEx) bool {
	overrides := c.DrsConfig.EnableVmBehaviorOverrides // by default they count
	return on(c.DrsConfig.Enabled) && c.DrsConfig.DefaultVmBehavior != types.DrsBehaviorManual && overrides != nil && !*overrides
}

func placement(c *types.ClusterConfigInfoEx) string {
	switch {
	case !on(c.DrsConfig.Enabled):
		return "on the hosts of their nodes"
	case ignoring(c):
		return "not fixed: DRS moves VMs, because the cluster ignores settings of single VMs"
	}
	return "on the hosts of their nodes; settings of single VMs exclude them from DRS, except with disable_drs: false"
}

func haText(c *types.ClusterConfigInfoEx) string {
	switch {
	case !HAOn(c):
		return "off"
	case on(c.DasConfig.AdmissionControlEnabled):
		return "on, with admission control"
	}
	return "on, without admission control"
}

func drsText(c *types.ClusterConfigInfoEx) string {
	if !on(c.DrsConfig.Enabled) {
		return "off"
	}
	return "on, " + cmp.Or(string(c.DrsConfig.DefaultVmBehavior), "default behavior")
}
