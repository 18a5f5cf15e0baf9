// Package results has the commands for existing runs: report, compare, trend, query and runs.
//
//	RUN ──▶ runref ──▶ document.Run ──▶ a renderer of package report, in the format of --format or of a file's name
package results
