package scaling

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
)

// Bounds of a table.
const (
	tableLinesMax   = 100_000
	tableLineBytes  = 64 << 10
	tableErrorsMax  = 20 // further problems are mostly the same one
	delimitersKnown = "\t;|,"
)

// Table is what a user measured elsewhere.
type Table struct {
	Points []Point
	// Headings of the two columns, empty without a line of headings.
	WorkersHeading, ThroughputHeading string
	DecimalComma                      bool // "1,5" was read as one and a half
}

// headings of columns that need no --columns, in lower case.
var (
	workersHeadings = []string{
		"n", "workers", "clients", "threads", "users", "connections", "concurrency", "jobs", "vms", "nodes", "hosts", "load", "processes", "numjobs", "queue_depth",
	}
	throughputHeadings = []string{
		"x", "throughput", "tps", "iops", "ops", "ops/s", "ops_s", "qps", "rps", "rate", "requests/s", "transactions/s", "mb/s", "mb_s", "bandwidth", "x(n)",
	}
)

// tableReader reads one table line by line and collects its problems.
type tableReader struct {
	file      string
	delimiter rune // 0: blanks
	names     []string
	at        [2]int // columns of workers and throughput
	chosen    bool   // the first line was read
	lost      bool   // and its columns are not clear
	table     Table
	problems  diag.List
}

// ReadTable reads workers and throughput from text in columns: with or without headings, separated by commas, semicolons, tabs,
// bars or blanks, with comments after #. Columns are named or numbered from 1; none for the usual names, or the only two columns.
// Several lines may have the same number of workers. The error is a diag.ListError with the problem of each line.
func ReadTable(r io.Reader, file string, columns []string) (Table, error) {
	t := tableReader{file: file}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, tableLineBytes)
	number := 0
	for !t.lost && len(t.problems) < tableErrorsMax && lines.Scan() {
		number++
		if number > tableLinesMax {
			t.problem(textLine{number: number}, "too-long", "", "more than %d lines", tableLinesMax)
			break
		}
		text := strings.TrimRight(strings.TrimPrefix(lines.Text(), "\ufeff"), "\r")
		if content := withoutComment(text); strings.TrimSpace(content) != "" {
			t.line(textLine{number, text}, content, columns)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		t.problem(textLine{number: number + 1}, "too-long", "", "line is longer than %d bytes", tableLineBytes)
	case err != nil:
		return Table{}, fmt.Errorf("read %s: %w", file, err)
	}
	if len(t.problems) == 0 && len(t.table.Points) == 0 {
		t.problem(textLine{}, "no-points", "each line has a number of workers and a throughput, such as: 8,7867.6", "no measurements in the file")
	}
	return t.table, t.problems.Err()
}

// withoutComment cuts a line at a # that begins it or follows a blank.
func withoutComment(line string) string {
	for i, r := range line {
		if r == '#' && (i == 0 || strings.ContainsRune(" \t", rune(line[i-1]))) {
			return line[:i]
		}
	}
	return line
}

// textLine is one line of the file, with its number from 1.
type textLine struct {
	number int
	text   string
}

func (t *tableReader) problem(at textLine, code, hint, format string, args ...any) {
	t.problems.Add(diag.Diagnostic{
		Code: code, Pos: diag.Position{File: t.file, Line: at.number}, Source: at.text, Hint: hint, Message: fmt.Sprintf(format, args...),
	})
}

// line reads one line: the headings, or a point.
func (t *tableReader) line(at textLine, content string, columns []string) {
	if !t.chosen {
		t.delimiter = delimiterOf(content)
	}
	fields, err := t.split(content)
	if err != nil {
		t.problem(at, "bad-line", "", "%v", err)
		return
	}
	if !t.chosen {
		t.chosen = true
		heading := !slices.ContainsFunc(fields, func(f string) bool { _, ok := t.number(f); return ok })
		if heading {
			t.names = fields
		}
		if t.lost = !t.choose(at, len(fields), columns); t.lost || heading {
			return
		}
	}
	var values [2]float64
	for i, what := range []string{"workers", "throughput"} {
		if t.at[i] >= len(fields) {
			t.problem(at, "missing-column", "", "%s, and %s is column %d", textio.Plural(len(fields), "column"), what, t.at[i]+1)
			return
		}
		v, ok := t.number(fields[t.at[i]])
		if !ok {
			t.problem(at, "bad-number", numberHint(fields[t.at[i]]), "%s: invalid number %q", what, fields[t.at[i]])
			return
		}
		values[i] = v
	}
	point := Point{values[0], values[1]}
	if note, bad := badPoint([]Point{point}); bad {
		t.problem(at, "bad-number", "", "%s", strings.TrimSuffix(strings.TrimPrefix(note.Text, "Point 1 has "), "."))
		return
	}
	t.table.Points = append(t.table.Points, point)
}

// delimiterOf finds what separates the columns. A comma is last: beside another delimiter it belongs to a number.
func delimiterOf(line string) rune {
	for _, d := range delimitersKnown {
		if strings.ContainsRune(line, d) {
			return d
		}
	}
	return 0
}

func (t *tableReader) split(content string) ([]string, error) {
	if t.delimiter == 0 {
		return strings.Fields(content), nil
	}
	r := csv.NewReader(strings.NewReader(content))
	r.Comma, r.TrimLeadingSpace, r.LazyQuotes = t.delimiter, true, true
	fields, err := r.Read()
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return fields, err
}

// number reads a decimal number, with a decimal comma where commas do not separate columns.
func (t *tableReader) number(text string) (float64, bool) {
	if strings.ContainsAny(text, "_xXpP") {
		return 0, false
	}
	comma := t.delimiter != ',' && strings.Count(text, ",") == 1 && !strings.Contains(text, ".")
	if comma {
		text = strings.Replace(text, ",", ".", 1)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	t.table.DecimalComma = t.table.DecimalComma || comma
	return v, true
}

func numberHint(text string) string {
	switch {
	case text == "":
		return "leave the line out if nothing was measured"
	case strings.ContainsAny(text, ", "):
		return "write numbers without separators of thousands"
	case strings.ContainsAny(text[len(text)-1:], "kKmMgG%s"):
		return "write numbers without units and prefixes: 41200 for 41.2k"
	}
	return ""
}

// choose finds the two columns.
func (t *tableReader) choose(line textLine, width int, columns []string) bool {
	if len(columns) == 0 {
		t.at = [2]int{t.known(workersHeadings), t.known(throughputHeadings)}
		switch {
		case width == 2 && (t.at[0] < 0 || t.at[1] < 0):
			t.at = [2]int{0, 1}
		case width < 2:
			t.problem(line, "one-column", "columns are separated by commas, semicolons, tabs, bars or blanks", "one column, want workers and throughput")
			return false
		case t.at[0] < 0 || t.at[1] < 0:
			t.problem(line, "which-column", "name them: --columns "+t.exampleColumns(), "%d columns, and it is not clear which are workers and throughput", width)
			return false
		}
	}
	for i, name := range columns {
		at, err := strconv.Atoi(name)
		if at--; err != nil {
			at = slices.IndexFunc(t.names, func(n string) bool { return strings.EqualFold(n, name) })
		}
		if at < 0 || at >= width {
			hint := fmt.Sprintf("columns are numbered from 1 to %d", width)
			if len(t.names) > 0 {
				hint = "columns: " + strings.Join(t.names, ", ")
			}
			t.problem(line, "unknown-column", hint, "unknown column %q", name)
			return false
		}
		t.at[i] = at
	}
	if len(t.names) > 0 {
		t.table.WorkersHeading, t.table.ThroughputHeading = t.names[t.at[0]], t.names[t.at[1]]
	}
	return true
}

// known is the only column with one of these headings, or -1.
func (t *tableReader) known(headings []string) int {
	found := -1
	for i, name := range t.names {
		if slices.Contains(headings, strings.ToLower(name)) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

func (t *tableReader) exampleColumns() string {
	if len(t.names) > 1 {
		return t.names[0] + "," + t.names[1]
	}
	return "1,2"
}

// Names are the words of the table's headings. Those of the letters N and X are left out.
func (t *Table) Names(format func(float64) string) Names {
	names := Names{Workers: "workers", Throughput: format}
	if h := t.WorkersHeading; h != "" && !slices.Contains([]string{"n", "load", "concurrency"}, strings.ToLower(h)) {
		names.Workers = h
	}
	if h := t.ThroughputHeading; h != "" && !slices.Contains([]string{"x", "x(n)", "throughput", "rate", "bandwidth"}, strings.ToLower(h)) {
		names.Throughput = func(v float64) string { return format(v) + " " + h }
	}
	return names
}
