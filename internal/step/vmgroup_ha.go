package step

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// setHA enables or disables restart after a node failure for all VMs of the run, and annotates that. X-Ray takes a group and acts
// on all.
func setHA(ctx context.Context, env *verb.Env, enabled bool, group string, mark bool) error {
	placer, ok := env.Target.(target.Placer)
	if !ok {
		return fmt.Errorf("set restart after a node failure: the target cannot")
	}
	vms := env.VMs.Of("")
	if len(vms) == 0 {
		return nil
	}
	if err := placer.SetHA(ctx, env.Tag, vms, enabled); err != nil {
		return fmt.Errorf("set restart after a node failure of %d VMs: %w", len(vms), err)
	}
	state := "off"
	if enabled {
		state = "on"
	}
	env.Mark(mark, "%s: restart after a node failure is %s", group, state)
	return nil
}
