package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// outcome is what a part writes into its row.
type outcome struct {
	took, date, commit, result string
}

// The columns of the table.
const (
	columnPart = iota
	columnProves
	columnNeeds
	columnTook
	columnDate
	columnCommit
	columnResult
	columnCount
)

// cells splits a row of a table; nil for other lines.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") {
		return nil
	}
	list := strings.Split(strings.Trim(line, "|"), "|")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// readRow finds the row of a part.
func readRow(page, part string) (list []string, err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if list := cells(line); len(list) == columnCount && list[columnPart] == "`"+part+"`" {
			return list, nil
		}
	}
	return nil, fmt.Errorf("%s has no row for part %q: add one with what it proves and needs", page, part)
}

// record replaces what the row of a part says of its last run.
func record(page, part string, o outcome) error {
	row, err := readRow(page, part)
	if err != nil {
		return err
	}
	row = slices.Concat(row[:columnTook], []string{o.took, o.date, o.commit, strings.ReplaceAll(o.result, "|", "/")})
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	var changed strings.Builder
	for line := range strings.Lines(string(text)) {
		if list := cells(line); len(list) == columnCount && list[columnPart] == row[columnPart] {
			line = "| " + strings.Join(row, " | ") + " |\n"
		}
		changed.WriteString(line)
	}
	return os.WriteFile(page, []byte(changed.String()), 0o644)
}
