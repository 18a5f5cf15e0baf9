// Package executor executes a plan, emits events, and cleans up. Its main type is Engine.
//
// It does not depend on concrete steps, providers or generators: it receives a plan with bound steps, a target.Target and a way
// to reach the VMs. It draws no charts and stores no results; events and intervals go to callbacks of the caller.
//
//	Engine:   Plan ──▶ machine (pure: state, outcome → state, actions) ──▶ loop (performs actions) ──▶ Events
//	Cleaner:  Journal of a run that was killed ──▶ everything undone
//
// Map of the package:
//
//	machine.go                   the pure state machine
//	engine.go, loop.go           the thin loop around it
//	blockloop.go, progress.go    branches that run at once; loads of a rehearsal that are extended over slow steps
//	loads.go, starts.go, restart.go, settle.go, notes.go  interfaces of a running step, in addition to the fleet
//	undo.go, cleaner.go, teardown.go  undo of the changes in a journal, also after a kill
//	failpoint.go                 named places where tests inject failures
package executor
