// Package output reads what vdbench writes into its output folder and prints.
//
//	flatfile.html  ──Table.Line──▶ Row: an interval of a run, or its average
//	histogram.html ──Histograms──▶ Distribution of each run: buckets of reads and writes ──Buckets.Histogram──▶ stat.Histogram
//	what it prints ──Judge──▶ Result: whether it completed, and its first errors
//
// Output that was cut gives what is complete in it. vdbench 5.04.07 counts neither a warm-up nor the first interval of a run in averages and
// histograms; 5.04.05 says the same and counts the first interval.
package output

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Row is one line of flatfile.html. Values that vdbench does not state are NaN.
type Row struct {
	Run      string
	Interval int // its number, 0 of an average
	From, To int // intervals of an average
	Average  bool
	At       time.Time // when it was written, at the end of its interval; zero unless vdbench ran with TZ=UTC

	Rate        float64 // operations per second
	Asked       float64 // the requested rate
	Mebibytes   float64 // per second
	BytesPerOp  float64
	ReadPercent float64
	Millis      float64 // mean response time
	ReadMillis  float64
	WriteMillis float64
	QueueDepth  float64
	CPU, System float64 // percent of all CPUs; System is a part of CPU

	// Of file systems: operations per second by kind, among them "read", "write", "getattr" and "open", and Mebibytes by direction.
	Rates                         map[string]float64
	ReadMebibytes, WriteMebibytes float64
}

// unlimited is what vdbench states as the requested rate of a run without one.
const unlimited = 9999988

// Table reads flatfile.html line by line. The zero value has not read the names of columns yet.
type Table struct {
	columns []string
}

// fixed are the first columns, in any version.
var fixed = []string{"tod", "timestamp", "run", "interval"}

// kinds are the kinds of operations that have columns for file systems.
var kinds = []string{"read", "write", "mkdir", "rmdir", "create", "open", "close", "delete", "getattr", "setattr", "access", "copy", "move"}

// columnsMax bounds a line.
const columnsMax = 400

// Line reads one complete line, without its line feed. Only some are rows.
func (t *Table) Line(text string) (Row, bool, error) {
	words := strings.Fields(text)
	switch {
	case len(words) == 0 || words[0] == "*" || strings.HasPrefix(text, "<") || strings.HasPrefix(text, "*"):
		return Row{}, false, nil
	case len(words) > columnsMax:
		return Row{}, false, fmt.Errorf("read flatfile: a line of %d columns", len(words))
	case words[0] == "tod":
		for i := range words {
			words[i] = strings.ToLower(words[i]) // their case differs between versions
		}
		if len(words) <= len(fixed) || !slices.Equal(words[:len(fixed)], fixed) {
			return Row{}, false, fmt.Errorf("read flatfile: columns %.80q", text)
		}
		t.columns = words
		return Row{}, false, nil
	case t.columns == nil:
		return Row{}, false, fmt.Errorf("read flatfile: no names of columns before %.80q", text)
	case len(words) != len(t.columns):
		return Row{}, false, fmt.Errorf("read flatfile: %d values of %d columns: %.80q", len(words), len(t.columns), text)
	}
	r, err := t.row(words)
	if err != nil {
		return Row{}, false, fmt.Errorf("read flatfile: %w: %.80q", err, text)
	}
	return r, true, nil
}

// row reads the values of a line.
func (t *Table) row(words []string) (r Row, err error) {
	r.Run = words[2]
	if r.Interval, r.From, r.To, err = number(words[3]); err != nil {
		return r, err
	}
	r.Average, r.At = r.Interval == 0, ended(words[0], words[1])
	values := map[string]float64{}
	for i := len(fixed); i < len(words); i++ {
		if values[t.columns[i]], err = value(words[i]); err != nil {
			return r, err
		}
	}
	of := func(names ...string) float64 {
		for _, name := range names {
			if v, has := values[name]; has {
				return v
			}
		}
		return math.NaN()
	}
	r.Rate, r.Asked, r.Mebibytes, r.Millis = of("rate"), of("reqrate"), of("mb/sec"), of("resp")
	r.BytesPerOp, r.ReadPercent, r.ReadMillis, r.WriteMillis = of("bytes/io"), of("read%"), of("read_resp"), of("write_resp")
	r.ReadMebibytes, r.WriteMebibytes = of("mb_read"), of("mb_write")
	for _, kind := range kinds {
		if rate := of(kind + "_rate"); !math.IsNaN(rate) {
			if r.Rates == nil {
				r.Rates = map[string]float64{}
			}
			r.Rates[kind] = rate
		}
	}
	r.QueueDepth, r.CPU, r.System = of("queue_depth"), of("cpu_used"), of("cpu_kernel")
	if r.Asked >= unlimited {
		r.Asked = math.NaN()
	}
	if math.IsNaN(r.Rate) && !r.Average { // there is no average of a run that ended in its first interval
		return r, fmt.Errorf("no rate")
	}
	return r, nil
}

// ended reads the time of a row: "01:05:45.081" and "11/28/2026-01:05:45-UTC".
func ended(clock, date string) time.Time {
	seconds, err := time.Parse("01/02/2006-15:04:05-MST", date)
	if err != nil || !strings.HasSuffix(date, "-UTC") {
		return time.Time{}
	}
	at, err := time.Parse("15:04:05.000", clock)
	if err != nil {
		return time.Time{}
	}
	return seconds.Add(time.Duration(at.Nanosecond()))
}

// number reads the number of an interval, or which ones an average is of: "avg_2-5".
func number(text string) (n, from, to int, err error) {
	rest, average := strings.CutPrefix(text, "avg_")
	if !average {
		if n, err = strconv.Atoi(text); err == nil && n < 1 {
			err = fmt.Errorf("interval %d", n)
		}
		return n, 0, 0, err
	}
	first, last, _ := strings.Cut(rest, "-")
	if from, err = strconv.Atoi(first); err == nil {
		to, err = strconv.Atoi(last)
	}
	if err == nil && (from < 1 || to < 0) {
		err = fmt.Errorf("average %s", text)
	}
	return 0, from, to, err
}

// valueMax is more than any value of a column.
const valueMax = 1e18

// value reads one value. "n/a", "NaN" and words, such as versions and lists of sizes, have none.
func value(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) {
		return math.NaN(), nil
	}
	if !(v >= 0 && v <= valueMax) {
		return 0, fmt.Errorf("value %s", text)
	}
	return v, nil
}
