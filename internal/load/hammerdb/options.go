package hammerdb

import (
	"cmp"
	"math"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/unit"
)

// config is the configuration of one workload.
type config struct {
	test      Test // its minutes are those without a runtime
	fullCount int  // warehouses without the scale of a rehearsal
	server    postgres.Config
	cut       bool // the load is ended by a signal, before HammerDB has a result
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

var optionNames = []string{"all_warehouses", "build_users", "data", "key_and_think", "minutes", "rampup_minutes", "transactions", "users", "warehouses"}

// parse reads the options of a workload and reports everything that is wrong with them.
func parse(w *load.Workload) (*config, error) {
	o := &load.Options{Values: w.Options}
	c := &config{}
	t := &c.test
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
	c.server = postgres.ReadConfig(o, w, optionNames)
	c.readWarehouses(o, w)
	t.Builders = o.Integer("build_users", min(buildersDefault, max(1, t.Warehouses)), max(1, t.Warehouses))
	c.server.Clients = max(t.Users+1, t.Builders) + 2 // the monitor, the counters
	c.fitRuntime(w.Runtime)
	return c, o.Err(w.Name, "docs/guides/databases.md lists the options of hammerdb")
}

func (c *config) readWarehouses(o *load.Options, w *load.Workload) {
	n := 0
	if _, given := o.Values["warehouses"]; given {
		n = o.Integer("warehouses", 1, warehousesMax)
	}
	if text, given := o.Values["data"]; given {
		size, err := unit.ParseBytes(text)
		asked := warehousesFor(size)
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
	if f := w.Scale.Factor; f > 0 && f < 1 && n > 0 && c.server.Endpoint == "" {
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

// The data of a schema by its warehouses, measured on PostgreSQL 15 after the build: items beside what every database holds, and what a
// warehouse adds with its indexes.
const (
	bytesBase         = 20 * unit.MiB
	bytesPerWarehouse = 98 * unit.MiB
)

func dataBytes(warehouses int) int64 { return bytesBase + int64(warehouses)*bytesPerWarehouse }

// warehousesFor is the largest number of warehouses whose data fits into size, at least 1.
func warehousesFor(size int64) int { return int(max(1, (size-bytesBase)/bytesPerWarehouse)) }
