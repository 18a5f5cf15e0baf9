// Package rehearsal has tests alone: the programs as users have them, bragg and its agent, rehearse scenarios on guests that
// boot, on hosts of a lab, through real faults. Each run must end sealed, show its event on the report's time axis, go on
// with its load where the scenario says so, and leave nothing behind.
//
//	lab of two hosts ── bragg run SCENARIO --rehearse ──▶ bundle ──▶ its events and intervals, bragg report ──▶ marks
package rehearsal
