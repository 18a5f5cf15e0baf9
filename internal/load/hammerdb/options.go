package hammerdb

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// config is the configuration of one workload.
type config struct {
	test      Test // its minutes are those without a runtime
	fullCount int  // warehouses without the scale of a rehearsal
	kind      *serverKind
	server    place
	endpoint  string // "": a server of its own
	cut       bool   // the load is ended by a signal, before HammerDB has a result
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
)

const (
	procedures = "procedures"
	functions  = "functions"
)

var optionNames = []string{"all_warehouses", "build_users", "data", "key_and_think", "minutes", "rampup_minutes", "server", "transactions", "users", "warehouses"}

// parse reads the options of a workload and reports everything that is wrong with them.
func parse(w *load.Workload) (*config, error) {
	o := &load.Options{Values: w.Options}
	c := &config{kind: readKind(o)}
	t := &c.test
	t.Dialect = c.kind.dialect
	t.Users = o.Integer("users", usersDefault, usersMax)
	t.Minutes = o.Integer("minutes", minutesDefault, minutesMax)
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
	c.endpoint = o.Values["endpoint"]
	c.server = c.kind.read(o, w)
	c.readWarehouses(o, w)
	t.Builders = o.Integer("build_users", min(buildersDefault, max(1, t.Warehouses)), max(1, t.Warehouses))
	c.server.accept(max(t.Users+1, t.Builders) + 2) // the monitor, the counters
	c.fitRuntime(w.Runtime)
	return c, o.Err(w.Name, "docs/guides/databases.md lists the options of hammerdb")
}

func readKind(o *load.Options) *serverKind {
	var names []string
	for i := range serverKinds {
		if serverKinds[i].name == cmp.Or(o.Values["server"], serverKinds[0].name) {
			return &serverKinds[i]
		}
		names = append(names, serverKinds[i].name)
	}
	o.Fault("server", "server: %q is not %s", o.Values["server"], strings.Join(names, ", "))
	return &serverKinds[0]
}

func (c *config) readWarehouses(o *load.Options, w *load.Workload) {
	n := 0
	if _, given := o.Values["warehouses"]; given {
		n = o.Integer("warehouses", 1, warehousesMax)
	}
	if text, given := o.Values["data"]; given {
		size, err := unit.ParseBytes(text)
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
	c.fullCount = n
	if f := w.Scale.Factor; f > 0 && f < 1 && n > 0 && c.endpoint == "" {
		n = max(1, int(math.Round(float64(n)*f)))
	}
	c.test.Warehouses = n
}

// fitRuntime fits the test into the runtime: whole minutes, at least one of them measured. A shorter load is cut.
func (c *config) fitRuntime(runtime time.Duration) {
	if runtime <= 0 {
		return
	}
	t := &c.test
	whole := int(runtime / time.Minute)
	t.RampupMinutes = max(0, min(t.RampupMinutes, whole-1))
	t.Minutes = max(1, whole-t.RampupMinutes)
	c.cut = whole == 0
}

// takes is how long a test lasts that is not cut.
func (c *config) takes() time.Duration {
	return time.Duration(c.test.RampupMinutes+c.test.Minutes) * time.Minute
}
