// Package results is the verbs about runs that were made: report, compare, query and runs.
//
//	RUN ──▶ runref ──▶ document.Run ──▶ a renderer of package report, in the form that --format or a file's name asks for
package results
