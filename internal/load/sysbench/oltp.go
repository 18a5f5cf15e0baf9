package sysbench

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// oltpData is what a test of a database uses.
type oltpData struct {
	kind     serverKind
	place    place
	endpoint bool // outside of the VM
	tables   int
	rows     int // of each table
	fullRows int // without the scale of a rehearsal
	rate     int // transactions per second; 0: as fast as they go
	reads    bool
	writes   bool
}

// Bounds and defaults of databases.
const (
	tablesMax = 10_000
	rowsMax   = math.MaxInt32
	rateMax   = 10_000_000
	countMost = 100_000 // of statements in a transaction
)

var (
	readOptions = []option{{name: "point_selects", flag: "point-selects", most: countMost, zero: true}, {name: "range_selects", flag: "range-selects", words: onOff},
		{name: "range_size", flag: "range-size", most: 1_000_000}, {name: "simple_ranges", flag: "simple-ranges", most: countMost, zero: true},
		{name: "sum_ranges", flag: "sum-ranges", most: countMost, zero: true}, {name: "order_ranges", flag: "order-ranges", most: countMost, zero: true},
		{name: "distinct_ranges", flag: "distinct-ranges", most: countMost, zero: true}}
	writeOptions = []option{{name: "index_updates", flag: "index-updates", most: countMost, zero: true},
		{name: "non_index_updates", flag: "non-index-updates", most: countMost, zero: true}, {name: "delete_inserts", flag: "delete-inserts", most: countMost, zero: true}}
	transactionOptions = []option{{name: "skip_trx", flag: "skip-trx", words: onOff}}
	keyOptions         = []option{{name: "auto_inc", flag: "auto-inc", words: onOff}, {name: "create_secondary", flag: "create-secondary", words: onOff}}
)

// oltp returns a test of a database with the options of its transactions.
func oltp(name string, reads, writes bool, more ...[]option) *test {
	return &test{name: "oltp_" + name, read: readDatabase, reads: reads, writes: writes,
		options: slices.Concat(append([][]option{keyOptions}, more...)...),
		gauged: []interval.Gauge{{Name: "reads", Unit: "queries/s"}, {Name: "writes", Unit: "queries/s"}, {Name: "other", Unit: "queries/s"},
			{Name: "ignored errors", Unit: "1/s"}, {Name: "reconnects", Unit: "1/s"}}}
}

var oltpTests = []*test{
	oltp("read_write", true, true, readOptions, writeOptions, transactionOptions),
	oltp("read_only", true, false, readOptions, transactionOptions),
	oltp("write_only", false, true, writeOptions, transactionOptions),
	oltp("point_select", true, false),
	oltp("update_index", false, true),
	oltp("update_non_index", false, true),
	oltp("insert", false, true),
	oltp("delete", false, true),
}

// databaseOptions are those of all tests of databases, beside the server's.
var databaseOptions = []string{"server", "tables", "table_size", "data", "rate", "prepared", "rand_type"}

// randomTypes are distributions of rows. Versions differ in others.
var randomTypes = []string{"special", "uniform", "gaussian", "pareto"}

func readDatabase(o *load.Options, c *config, w *load.Workload) {
	d := &oltpData{reads: c.test.reads, writes: c.test.writes, tables: o.Integer("tables", 1, tablesMax), rate: o.Integer("rate", 0, rateMax), endpoint: o.Values["endpoint"] != ""}
	c.database = d
	var names []string
	for _, k := range serverKinds {
		if names = append(names, k.name); k.name == o.Values["server"] {
			d.kind = k
		}
	}
	if d.kind.name == "" {
		o.Choice("server", names)
		return // its options are not known
	}
	d.place = d.kind.read(o, w, c.optionNames(), c.threads)
	d.readRows(o, w)
	c.add("db-driver", d.kind.driver)
	c.add("tables", strconv.Itoa(d.tables))
	c.add("table-size", strconv.Itoa(d.rows))
	c.add("rand-type", word(o, "rand_type", randomTypes))
	if word(o, "prepared", onOff) == "off" {
		c.add("db-ps-mode", "disable")
	}
}

// word reads one of some words; the first is the default.
func word(o *load.Options, name string, words []string) string {
	text := cmp.Or(o.Values[name], words[0])
	if !slices.Contains(words, text) {
		o.Choice(name, words)
	}
	return text
}

// readRows reads the rows of a table, or finds as many as a size of all data has room for.
func (d *oltpData) readRows(o *load.Options, w *load.Workload) {
	d.rows = o.Integer("table_size", 0, rowsMax)
	if text, given := o.Values["data"]; given {
		size, err := load.DataSize(text)
		rows := max(1, (size-d.kind.baseBytes)/d.kind.rowBytes/int64(d.tables))
		switch {
		case err != nil || rows > rowsMax:
			o.Fault("data", "data: %q is not a size such as 50GiB, of at most %d rows in each table", text, rowsMax)
		case d.rows != 0:
			o.Fault("data", "data and table_size exclude each other")
		default:
			d.rows = int(rows)
		}
	}
	if _, wrong := o.Values["table_size"]; d.rows == 0 && !wrong && o.Values["data"] == "" {
		o.Fault("", "the size of the data is missing: data, such as 50GiB, or table_size")
	}
	d.fullRows = d.rows
	if f := w.Scale.Factor; f > 0 && f < 1 && !d.endpoint {
		d.rows = max(1, int(math.Round(float64(d.rows)*f)))
	}
}

// bytes is the size of all tables with some rows each.
func (d *oltpData) bytes(rows int) int64 {
	return d.kind.baseBytes + int64(d.tables)*int64(rows)*d.kind.rowBytes
}

// madeTable has one row with the number and the size of the tables that the last prefill made.
const madeTable = "bragg_sbtest"

// noteMade is made last: a prefill that was cut leaves none.
func (d *oltpData) noteMade() []string {
	return []string{"CREATE TABLE " + madeTable + " (made VARCHAR(40))", "INSERT INTO " + madeTable + " VALUES ('" + d.made() + "')"}
}

func (d *oltpData) made() string {
	return strconv.Itoa(d.tables) + " tables of " + strconv.Itoa(d.rows) + " rows"
}

// commands lists what a load or a prefill runs, as a plan shows it.
func (d *oltpData) commands(c *config, w *load.Workload) []program.Command {
	list, reach := d.place.planned(w.Prefill)
	verb := "run"
	if w.Prefill {
		if verb = "prepare"; d.endpoint {
			list = append(list, c.command("cleanup", w, reach...))
		}
	}
	return append(list, c.command(verb, w, reach...))
}
