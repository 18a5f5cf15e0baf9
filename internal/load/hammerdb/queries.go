package hammerdb

import (
	"fmt"
	"strconv"
)

// QueryTest is a TPROC-H test: each user runs sets of the 22 queries, in an order of its own. One user is the power test of TPC-H, several
// are its throughput test. Without refresh functions, neither has the metrics of TPC-H.
type QueryTest struct {
	Dialect  *Dialect
	Scale    int // scale factor, GB of raw data
	Builders int // virtual users that build the schema
	Users    int // virtual users of a run
	Sets     int // of queries, for each user
	Workers  int // degree of parallelism of a query, of PostgreSQL
}

// queryCount is how many queries a set has.
const queryCount = 22

// suppliersPerScale are rows of a table that no refresh function changes.
const suppliersPerScale = 10_000

// Script is the Tcl script of an action.
func (t *QueryTest) Script(action Action) string {
	if action == Probe {
		return probeScript(t.Dialect)
	}
	s := newScript(t.Dialect, tprocH)
	s.set("scale_fact", strconv.Itoa(t.Scale))
	s.set("num_tpch_threads", strconv.Itoa(t.Builders))
	if action == Run {
		s.set("total_querysets", strconv.Itoa(t.Sets))
		s.set("raise_query_error", "true") // otherwise HammerDB gives queries that failed a time, and does not always say so
		s.set("verbose", "false")
		s.set("refresh_on", "false")
		s.set("cloud_query", "false")
		if t.Dialect == PostgreSQL {
			s.set("degree_of_parallel", strconv.Itoa(t.Workers))
		}
	}
	return s.end(action, t.Users)
}

func (t *QueryTest) schema() schema {
	return schema{room: "-tproc-h", tables: []string{"customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"},
		count: "SELECT count(*) FROM SUPPLIER", want: t.Scale * suppliersPerScale, of: "suppliers", text: fmt.Sprintf("scale factor %d", t.Scale)}
}

func (t *QueryTest) users() int { return t.Users }
