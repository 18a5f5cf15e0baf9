package executor

// Failpoints lists the names that a run passes, in about the order in which it passes them. Not every run passes all.
func Failpoints() []string {
	return []string{
		"lease.acquire", "lease.locked", "lease.fenced", "lease.ask", "lease.held",
		"controller.written", "controller.linked",
		"journal.create", "journal.rename", "journal.intent", "journal.intended",
		"run.start",
		"phase.setup", "phase.run", "phase.teardown",
		"step.before", "step.after",
		"vms.create", "vms.created", "vms.clone", "vms.cloned",
		"vms.power-on", "vms.powered-on", "vms.power-off", "vms.powered-off",
		"vms.delete", "vms.deleted",
		"node.power-off", "node.powered-off", "node.shutdown", "node.shut-down", "node.power-on", "node.powered-on",
		"load.reach", "load.start", "load.started", "load.ended", "load.wait", "load.stop",
		"background.start", "background.ended",
		"undo.power", "undo.steps", "undo.vms", "undo.done",
		"run.end", "run.ended",
		"recover.read", "recover.undo", "recover.ended",
	}
}
