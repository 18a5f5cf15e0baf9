package run

// PowerCuts returns how often this run has taken the power from a VM, or was about to. Whoever sees the VM without power can tell by
// it whether the run wanted that.
func (e *Engine) PowerCuts(vm string) int { return e.fleet.cutsOf(vm) }
