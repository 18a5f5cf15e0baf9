// Package draw lays out text for terminals: tables, sparklines, styles, and quantities with units and prefixes.
//
//	values ──Quantity, Amount, Duration──▶ cells ──Table.Lines──▶ lines of a width, with or without colour
package draw
