// Package run is the engine: it turns a scenario into a Plan and a Plan into events, and leaves nothing behind.
//
// It knows no concrete step, provider or generator: it is handed a Catalog of steps and generators, a target.Target and
// a way to reach the VMs. It draws nothing and stores no result; events and intervals go to whoever asked for them.
//
//	Compile:  Scenario + Inventory + Catalog ──▶ Plan, or all diagnostics at once
//	Engine:   Plan ──▶ machine (pure: state, outcome → state, actions) ──▶ loop (performs actions) ──▶ Events
//	Cleaner:  Journal of a run that was killed ──▶ everything undone
//
// Map of the package:
//
//	compile.go                   calls → bound steps → timeline
//	block.go, blockloop.go       steps that hold steps: repetitions written out, branches that run at once
//	plan.go, plantext.go         the Plan as a value, as JSON and as text
//	workplan.go, rehearse.go, preflight.go  what workloads touch; how a run is made smaller; does it fit
//	lasting.go, progress.go      loads of a rehearsal that last over steps which it does not shorten
//	machine.go                   the pure state machine
//	engine.go, loop.go, perform.go  the thin loop around it
//	fleet.go, nodes.go, loads.go, notes.go  what a running step acts through
//	moves.go                     VMs that somebody else moves
//	undo.go, cleaner.go, teardown.go  how what a journal lists is undone, also after a kill
//	failpoint.go                 named places where a test makes things fail
package run
