package hammerdb

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/load"
)

// config is the configuration of one workload.
type config struct {
	benchmark
	orders    *Test      // of TPROC-C, nil for the other one; its minutes are those without a runtime
	queries   *QueryTest // of TPROC-H, nil for the other one
	dataBytes int64
	fullBytes int64 // without the scale of a rehearsal
	kind      *serverKind
	server    place
	endpoint  string // "": a server of its own
	cut       bool   // a load of TPROC-C that is ended by a signal, before HammerDB has a result
}

// benchmark is one of the two tests.
type benchmark interface {
	Script(action Action) string
	schema() schema
	users() int
}

// schema is what a build makes.
type schema struct {
	room   string // what the name of its room has more than that of TPROC-C: both may be on one disk
	tables []string
	count  string // a statement
	want   int    // its answer
	of     string // what it counts: "warehouses"
	text   string // its size
}

// Bounds and defaults.
const (
	warehousesMax   = 100_000
	usersDefault    = 8
	usersMax        = 5000
	buildersDefault = 2
	rampupDefault   = 2
	minutesDefault  = 5
	minutesMax      = 7 * 24 * 60
	setsMax         = 1000
	buildersMax     = 1000
	workersDefault  = 2
	workersMax      = 1024
)

const (
	procedures = "procedures"
	functions  = "functions"
)

var (
	commonNames = []string{"build_users", "server", "test", "users"}
	orderNames  = append([]string{"all_warehouses", "data", "key_and_think", "minutes", "rampup_minutes", "transactions", "warehouses"}, commonNames...)
	queryNames  = append([]string{"query_sets", "scale_factor", "workers"}, commonNames...)
)

// tests are the values of the option test, the default first.
var tests = []string{"tproc-c", "tproc-h"}

// parse reads the options of a workload and reports everything that is wrong with them.
func parse(w *load.Workload) (*config, error) {
	o := &load.Options{Values: w.Options}
	c := &config{kind: readKind(o), endpoint: o.Values["endpoint"]}
	test := cmp.Or(o.Values["test"], tests[0])
	if !slices.Contains(tests, test) {
		o.Choice("test", tests)
		return nil, o.Err(w.Name, hint)
	}
	if test == tests[0] {
		c.readOrders(o, w)
	} else {
		c.readQueries(o, w)
	}
	return c, o.Err(w.Name, hint)
}

const hint = "docs/guides/databases.md lists the options of hammerdb"

// readOrders reads the options of TPROC-C.
func (c *config) readOrders(o *load.Options, w *load.Workload) {
	t := &Test{Dialect: c.kind.dialect, counted: c.kind.told, Users: o.Integer("users", usersDefault, usersMax), Minutes: o.Integer("minutes", minutesDefault, minutesMax)}
	c.benchmark, c.orders = t, t
	t.RampupMinutes = rampupDefault
	if w.Options["rampup_minutes"] == "0" {
		t.RampupMinutes = 0
	} else {
		t.RampupMinutes = o.Integer("rampup_minutes", rampupDefault, minutesMax)
	}
	switch kind := cmp.Or(w.Options["transactions"], procedures); kind {
	case procedures:
		t.Procedures = true
	case functions:
	default:
		o.Fault("transactions", "transactions: %q is not %s or %s", kind, procedures, functions)
	}
	for name, to := range map[string]*bool{"all_warehouses": &t.AllWarehouses, "key_and_think": &t.KeyAndThink} {
		switch text := cmp.Or(w.Options[name], "false"); text {
		case "true", "True":
			*to = true
		case "false", "False":
		default:
			o.Fault(name, "%s: %q is not true or false", name, text)
		}
	}
	if !t.Procedures && t.Dialect != PostgreSQL {
		o.Fault("transactions", "transactions: %s has procedures only", c.kind.name)
	}
	c.server = c.kind.read(c.kind, o, w, orderNames)
	c.readWarehouses(o, w)
	t.Builders = o.Integer("build_users", min(buildersDefault, max(1, t.Warehouses)), max(1, t.Warehouses))
	if vms := c.server.accept(max(t.Users+1, t.Builders) + 2); vms > 1 { // the monitor, the counters
		o.Fault("", "%d VMs have clients of one server: HammerDB counts the orders of the whole database as those of each", vms)
	}
	c.fitRuntime(w.Runtime)
}

// scaleFactors are those of TPC-H.
var scaleFactors = []int{1, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000}

// readQueries reads the options of TPROC-H.
func (c *config) readQueries(o *load.Options, w *load.Workload) {
	t := &QueryTest{Dialect: c.kind.dialect, Users: o.Integer("users", 1, usersMax), Sets: o.Integer("query_sets", 1, setsMax),
		Builders: o.Integer("build_users", buildersDefault, buildersMax)}
	c.benchmark, c.queries = t, t
	if c.kind.told {
		o.Fault("test", "test: on %s Bragg runs %s only", c.kind.title, tests[0])
	}
	if _, given := o.Values["workers"]; given && t.Dialect != PostgreSQL {
		o.Fault("workers", "workers: %s runs a query on one thread", c.kind.name)
	}
	t.Workers = o.Integer("workers", workersDefault, workersMax)
	text := o.Values["scale_factor"]
	i := slices.IndexFunc(scaleFactors, func(n int) bool { return strconv.Itoa(n) == text })
	switch {
	case text == "":
		o.Fault("", "the size of the data is missing: scale_factor, in GB of raw data")
		i = 0
	case i < 0:
		o.Fault("scale_factor", "scale_factor: %q is not one of TPC-H: %s", text, strings.Trim(fmt.Sprint(scaleFactors), "[]"))
		i = 0
	}
	c.fullBytes = int64(scaleFactors[i]) * c.kind.bytesPerScale
	if f := w.Scale.Factor; f > 0 && f < 1 && c.endpoint == "" {
		for asked := float64(scaleFactors[i]); i > 0 && float64(scaleFactors[i]) > f*asked; {
			i--
		}
	}
	t.Scale = scaleFactors[i]
	c.dataBytes = int64(t.Scale) * c.kind.bytesPerScale
	c.server = c.kind.read(c.kind, o, w, queryNames)
	c.server.accept(max(t.Users, t.Builders+1) + 2)
}

func readKind(o *load.Options) *serverKind {
	var names []string
	for i := range serverKinds {
		if serverKinds[i].name == cmp.Or(o.Values["server"], serverKinds[0].name) {
			return &serverKinds[i]
		}
		names = append(names, serverKinds[i].name)
	}
	o.Choice("server", names)
	return &serverKinds[0]
}

func (c *config) readWarehouses(o *load.Options, w *load.Workload) {
	n := 0
	if _, given := o.Values["warehouses"]; given {
		n = o.Integer("warehouses", 1, warehousesMax)
	}
	if text, given := o.Values["data"]; given {
		size, err := load.DataSize(text)
		asked := c.kind.warehousesFor(size)
		switch {
		case err != nil || asked > warehousesMax:
			o.Fault("data", "data: %q is not a size such as 50GiB", text)
		case n != 0:
			o.Fault("data", "data and warehouses exclude each other")
		}
		n = asked
	}
	if n == 0 {
		o.Fault("", "the size of the data is missing: data, such as 50GiB, or warehouses")
	}
	c.fullBytes = c.kind.dataBytes(n)
	if f := w.Scale.Factor; f > 0 && f < 1 && n > 0 && c.endpoint == "" {
		n = max(1, int(math.Round(float64(n)*f)))
	}
	c.orders.Warehouses, c.dataBytes = n, c.kind.dataBytes(n)
}

// fitRuntime fits the test into the runtime: whole minutes, at least one of them measured. A shorter load is cut.
func (c *config) fitRuntime(runtime time.Duration) {
	if runtime <= 0 {
		return
	}
	t := c.orders
	whole := int(runtime / time.Minute)
	t.RampupMinutes = max(0, min(t.RampupMinutes, whole-1))
	t.Minutes = max(1, whole-t.RampupMinutes)
	c.cut = whole == 0
}

// takes is how long a TPROC-C lasts that is not cut.
func (c *config) takes() time.Duration {
	return time.Duration(c.orders.RampupMinutes+c.orders.Minutes) * time.Minute
}
