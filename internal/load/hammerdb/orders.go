package hammerdb

import (
	"fmt"
	"strconv"
)

// Test is a TPROC-C test. The server, users and passwords are none of it: see Access.
type Test struct {
	Dialect       *Dialect
	Warehouses    int
	Builders      int // virtual users that build the schema
	Users         int // virtual users of a run
	RampupMinutes int // HammerDB has no shorter unit
	Minutes       int
	// Procedures makes transactions of PostgreSQL procedures instead of functions. HammerDB calls functions by a way of its own Tcl library, which
	// other ones, such as that of Debian, do not have: then every transaction fails.
	Procedures bool
	// AllWarehouses lets each user change its warehouse with each transaction; otherwise it stays with one.
	AllWarehouses bool
	// KeyAndThink lets users wait as people do, several seconds per transaction.
	KeyAndThink bool
	// counted: HammerDB's transaction counter runs.
	counted bool
}

// Script is the Tcl script of an action.
func (t *Test) Script(action Action) string {
	if action == Probe {
		return probeScript(t.Dialect)
	}
	s := newScript(t.Dialect, tprocC)
	s.set("count_ware", strconv.Itoa(t.Warehouses))
	s.set("num_vu", strconv.Itoa(t.Builders))
	if t.Dialect == PostgreSQL {
		s.set("storedprocs", strconv.FormatBool(t.Procedures))
	}
	s.counts = t.counted
	if action == Run {
		s.set("driver", "timed")
		s.set("rampup", strconv.Itoa(t.RampupMinutes))
		s.set("duration", strconv.Itoa(t.Minutes))
		s.set("timeprofile", "true")
		s.set("allwarehouse", strconv.FormatBool(t.AllWarehouses))
		s.set("keyandthink", strconv.FormatBool(t.KeyAndThink))
	}
	return s.end(action, t.Users)
}

func (t *Test) schema() schema {
	return schema{tables: []string{"customer", "district", "history", "item", "new_order", "order_line", "orders", "stock", "warehouse"},
		count: "SELECT count(*) FROM warehouse", want: t.Warehouses, of: "warehouses", text: fmt.Sprintf("%d warehouses", t.Warehouses)}
}

func (t *Test) users() int { return t.Users }
