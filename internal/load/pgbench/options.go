package pgbench

import (
	"cmp"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/unit"
)

// config is the configuration of one workload.
type config struct {
	scripts   []script
	clients   int
	threads   int
	scale     int
	fullScale int     // without the scale of a rehearsal
	rate      float64 // transactions per second; 0: as fast as they go
	limit     time.Duration
	protocol  string
	server    postgres.Config
}

// script is one kind of transaction.
type script struct {
	name   string
	weight int
	own    bool // the workload's config file
	writes bool
}

// Bounds and defaults.
const (
	clientsDefault = 8
	clientsMax     = 10_000
	threadsDefault = 2
	scaleMax       = 1_000_000 // 14 TiB
)

var builtins = []script{
	{name: "tpcb-like", writes: true}, {name: "simple-update", writes: true}, {name: "select-only"},
}

var optionNames = []string{"clients", "data", "latency_limit", "protocol", "rate", "scale", "script", "threads"}

// reader reads the options into a configuration.
type reader struct {
	load.Options
	workload *load.Workload
	config   config
}

// parse reads the options of a workload and reports everything that is wrong with them.
func parse(w *load.Workload) (*config, error) {
	r := &reader{Options: load.Options{Values: w.Options}, workload: w}
	c := &r.config
	c.clients, c.protocol = r.Integer("clients", clientsDefault, clientsMax), cmp.Or(w.Options["protocol"], "simple")
	c.threads = r.Integer("threads", min(threadsDefault, c.clients), c.clients)
	if !slices.Contains([]string{"simple", "extended", "prepared"}, c.protocol) {
		r.Fault("protocol", "protocol: %q is not simple, extended or prepared", c.protocol)
	}
	r.readRate()
	r.readScripts()
	c.server = postgres.ReadConfig(&r.Options, w, optionNames)
	c.server.Clients = c.clients
	r.readScale()
	return c, r.Err(w.Name, "docs/guides/databases.md lists the options of pgbench")
}

func (r *reader) readRate() {
	c := &r.config
	if text, given := r.Values["rate"]; given {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || !(rate > 0 && rate <= 1e7) {
			r.Fault("rate", "rate: %q is not a number of transactions per second", text)
		}
		c.rate = rate
	}
	if text, given := r.Values["latency_limit"]; given {
		limit, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
		if err != nil || limit < time.Millisecond || limit > time.Hour {
			r.Fault("latency_limit", "latency_limit: %q is not a time such as 100ms", text)
		}
		if c.limit = limit; c.rate == 0 {
			r.Fault("latency_limit", "latency_limit needs a rate: it skips transactions that are that late")
		}
	}
}

// readScripts reads names with optional weights, "select-only@9 tpcb-like", or takes the config file as the only script.
func (r *reader) readScripts() {
	c, w := &r.config, r.workload
	text, given := r.Values["script"]
	if w.ConfigName != "" {
		if given {
			r.Fault("script", "script: the workload has a config_file, which is its script")
		}
		name := strings.TrimSuffix(path.Base(w.ConfigName), ".sql")
		c.scripts = []script{{name: name, weight: 1, own: true, writes: true}}
		if command := shellCommand(w.Config); command != "" {
			r.Fault("", "%s runs a program by %s, which is not allowed", w.ConfigName, command)
		}
		return
	}
	for _, word := range strings.Fields(strings.ReplaceAll(cmp.Or(text, builtins[0].name), ",", " ")) {
		name, weightText, weighted := strings.Cut(word, "@")
		i := slices.IndexFunc(builtins, func(s script) bool { return s.name == name })
		weight := 1
		if n, err := strconv.Atoi(weightText); weighted && (err != nil || n < 1 || n > 1e6) {
			r.Fault("script", "script: %q has no weight", word)
		} else if weighted {
			weight = n
		}
		switch {
		case i < 0:
			r.Fault("script", "script: %q is not tpcb-like, simple-update or select-only", name)
		case slices.ContainsFunc(c.scripts, func(s script) bool { return s.name == name }):
			r.Fault("script", "script: %q is there twice", name)
		default:
			s := builtins[i]
			s.weight = weight
			c.scripts = append(c.scripts, s)
		}
	}
}

// shellPattern finds pgbench's meta commands that run programs. It also finds them in comments and texts, where they do nothing. pgbench
// accepts blanks and continued lines between the backslash and the name.
var shellPattern = regexp.MustCompile(`(?i)\\(?:[\s\v]|\\\r?\n)*(?:set)?shell\b`)

func shellCommand(text string) string { return shellPattern.FindString(text) }

func (r *reader) readScale() {
	c, w := &r.config, r.workload
	c.scale = r.Integer("scale", 0, scaleMax)
	if text, given := r.Values["data"]; given {
		size, err := load.DataSize(text)
		scale := scaleFor(size)
		switch {
		case err != nil || scale > scaleMax:
			r.Fault("data", "data: %q is not a size such as 50GiB", text)
		case c.scale != 0:
			r.Fault("data", "data and scale exclude each other")
		}
		c.scale = scale
	}
	if c.scale == 0 && (c.server.Endpoint == "" || !c.ownScript() || w.Prefill) {
		r.Fault("", "the size of the data is missing: data, such as 50GiB, or scale")
	}
	c.fullScale = c.scale
	if f := w.Scale.Factor; f > 0 && f < 1 && c.scale > 0 && c.server.Endpoint == "" {
		c.scale = max(1, int(math.Round(float64(c.scale)*f)))
	}
}

// ownScript reports whether the workload brings its script.
func (c *config) ownScript() bool {
	return slices.ContainsFunc(c.scripts, func(s script) bool { return s.own })
}

// The data of pgbench by its scale: 100,000 rows and their index, beside what every database holds. 61 rows fit into a page.
const (
	bytesBase     = 79 * unit.MiB / 10
	bytesPerScale = 1495 * unit.MiB / 100
)

func dataBytes(scale int) int64 { return bytesBase + int64(scale)*bytesPerScale }

// scaleFor is the largest scale whose data fits into size, at least 1.
func scaleFor(size int64) int { return int(max(1, (size-bytesBase)/bytesPerScale)) }
