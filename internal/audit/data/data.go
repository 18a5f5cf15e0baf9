// Package data has the rules of the audit on the data that loads touch: its size against memory, its content, who wrote it before, and
// whether several read or write the same.
//
//	plan, loads ──Rule.Check──▶ findings
//
// It has no list of its own: audit.Rules lists all.
package data
