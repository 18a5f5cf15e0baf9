package pgbench

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
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
	endpoint  string
	disk      string // device of the data, "" with an endpoint
	walDisk   string // device of the WAL; the same as disk if it was not set
	settings  []setting
}

// script is one kind of transaction.
type script struct {
	name   string
	weight int
	own    bool // the workload's config file
	writes bool
}

// setting is a parameter of the server.
type setting struct{ name, value string }

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

// settingNames are the parameters of the server that a scenario may set. None of them runs a command or reads a file.
var settingNames = []string{
	"autovacuum", "autovacuum_naptime", "backend_flush_after", "bgwriter_delay", "bgwriter_lru_maxpages", "checkpoint_completion_target",
	"checkpoint_flush_after", "checkpoint_timeout", "commit_delay", "effective_cache_size", "effective_io_concurrency", "full_page_writes",
	"huge_pages", "jit", "maintenance_work_mem", "max_wal_size", "min_wal_size", "random_page_cost", "shared_buffers", "synchronous_commit",
	"track_io_timing", "wal_buffers", "wal_compression", "wal_sync_method", "work_mem",
}

var settingPattern = regexp.MustCompile(`^[A-Za-z0-9_.]{1,40}$`)

var optionNames = []string{"clients", "data", "disk", "endpoint", "latency_limit", "protocol", "rate", "scale", "script", "threads", "wal_disk"}

// reader reads options and remembers what is wrong with them.
type reader struct {
	options map[string]string
	faults  []string
}

func (r *reader) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func (r *reader) integer(name string, fallback, most int) int {
	text, given := r.options[name]
	if !given {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		r.fault("%s: %q is not a number from 1 to %d", name, text, most)
		return fallback
	}
	return n
}

// parse reads the options of a workload and reports everything that is wrong with them.
func parse(w *load.Workload) (*config, error) {
	r := &reader{options: w.Options}
	c := &config{
		clients: r.integer("clients", clientsDefault, clientsMax), protocol: cmp.Or(w.Options["protocol"], "simple"), endpoint: w.Options["endpoint"],
	}
	c.threads = r.integer("threads", min(threadsDefault, c.clients), c.clients)
	if !slices.Contains([]string{"simple", "extended", "prepared"}, c.protocol) {
		r.fault("protocol: %q is not simple, extended or prepared", c.protocol)
	}
	r.readRate(c)
	r.readScripts(c, w)
	r.readPlace(c, w)
	r.readScale(c, w)
	r.readSettings(c)
	if len(r.faults) == 0 {
		return c, nil
	}
	return nil, &diag.Error{
		Code: "bad-generator-option", Exit: diag.ExitData,
		Message: fmt.Sprintf("options of workload %q: %s", w.Name, strings.Join(r.faults, "; ")),
		Hint:    "docs/guides/databases.md lists the options of pgbench",
	}
}

func (r *reader) readRate(c *config) {
	if text, given := r.options["rate"]; given {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || !(rate > 0 && rate <= 1e7) {
			r.fault("rate: %q is not a number of transactions per second", text)
		}
		c.rate = rate
	}
	if text, given := r.options["latency_limit"]; given {
		limit, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
		if err != nil || limit < time.Millisecond || limit > time.Hour {
			r.fault("latency_limit: %q is not a time such as 100ms", text)
		}
		if c.limit = limit; c.rate == 0 {
			r.fault("latency_limit needs a rate: it skips transactions that are that late")
		}
	}
}

// readScripts reads names with optional weights, "select-only@9 tpcb-like", or takes the config file as the only script.
func (r *reader) readScripts(c *config, w *load.Workload) {
	text, given := r.options["script"]
	if w.ConfigName != "" {
		if given {
			r.fault("script: the workload has a config_file, which is its script")
		}
		name := strings.TrimSuffix(path.Base(w.ConfigName), ".sql")
		c.scripts = []script{{name: name, weight: 1, own: true, writes: true}}
		if command := shellCommand(w.Config); command != "" {
			r.fault("%s runs a program by %s, which is not allowed", w.ConfigName, command)
		}
		return
	}
	for _, word := range strings.Fields(strings.ReplaceAll(cmp.Or(text, builtins[0].name), ",", " ")) {
		name, weightText, weighted := strings.Cut(word, "@")
		i := slices.IndexFunc(builtins, func(s script) bool { return s.name == name })
		weight := 1
		if n, err := strconv.Atoi(weightText); weighted && (err != nil || n < 1 || n > 1e6) {
			r.fault("script: %q has no weight", word)
		} else if weighted {
			weight = n
		}
		switch {
		case i < 0:
			r.fault("script: %q is not tpcb-like, simple-update or select-only", name)
		case slices.ContainsFunc(c.scripts, func(s script) bool { return s.name == name }):
			r.fault("script: %q is there twice", name)
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

// readPlace finds the disks of the server, or the endpoint.
func (r *reader) readPlace(c *config, w *load.Workload) {
	if c.endpoint != "" {
		if !endpointPattern.MatchString(c.endpoint) {
			r.fault("endpoint: %q is not a name of letters, digits, - and _", c.endpoint)
		}
		for _, name := range []string{"disk", "wal_disk"} {
			if _, given := r.options[name]; given {
				r.fault("%s: an endpoint has its own disks", name)
			}
		}
		return
	}
	var names []string
	for _, d := range w.Devices {
		names = append(names, d.Name)
	}
	if len(names) == 0 {
		r.fault("the VM group has no data disk for a server, and there is no endpoint")
		return
	}
	c.disk = cmp.Or(r.options["disk"], names[0])
	c.walDisk = cmp.Or(r.options["wal_disk"], c.disk)
	for _, d := range []string{c.disk, c.walDisk} {
		if !slices.Contains(names, d) {
			r.fault("disk %q: the VM group has %s", d, strings.Join(names, ", "))
		}
	}
}

func (r *reader) readScale(c *config, w *load.Workload) {
	c.scale = r.integer("scale", 0, scaleMax)
	if text, given := r.options["data"]; given {
		size, err := unit.ParseBytes(text)
		scale := scaleFor(size)
		switch {
		case err != nil || scale > scaleMax:
			r.fault("data: %q is not a size such as 50GiB", text)
		case c.scale != 0:
			r.fault("data and scale exclude each other")
		}
		c.scale = scale
	}
	own := slices.ContainsFunc(c.scripts, func(s script) bool { return s.own })
	if c.scale == 0 && (c.endpoint == "" || !own || w.Prefill) {
		r.fault("the size of the data is missing: data, such as 50GiB, or scale")
	}
	c.fullScale = c.scale
	if f := w.Scale.Factor; f > 0 && f < 1 && c.scale > 0 && c.endpoint == "" {
		c.scale = max(1, int(math.Round(float64(c.scale)*f)))
	}
}

// The data of pgbench by its scale: 100,000 rows and their index, beside what every database holds. 61 rows fit into a page.
const (
	bytesBase     = 79 * unit.MiB / 10
	bytesPerScale = 1495 * unit.MiB / 100
)

func dataBytes(scale int) int64 { return bytesBase + int64(scale)*bytesPerScale }

// scaleFor is the largest scale whose data fits into size, at least 1.
func scaleFor(size int64) int { return int(max(1, (size-bytesBase)/bytesPerScale)) }

// readSettings takes all other options as parameters of the server.
func (r *reader) readSettings(c *config) {
	for _, name := range slices.Sorted(maps.Keys(r.options)) {
		value := r.options[name]
		switch {
		case slices.Contains(optionNames, name):
		case !slices.Contains(settingNames, name):
			hint := ""
			if near := diag.Nearest(name, slices.Concat(optionNames, settingNames)); near != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			r.fault("no option %q%s", name, hint)
		case c.endpoint != "":
			r.fault("%s: the server of an endpoint has its own settings", name)
		case !settingPattern.MatchString(value):
			r.fault("%s: %q is not a value of a setting", name, value)
		default:
			c.settings = append(c.settings, setting{name, value})
		}
	}
	if len(c.scripts) > interval.OperationsMax {
		r.fault("%d scripts, at most %d are counted", len(c.scripts), interval.OperationsMax)
	}
}
