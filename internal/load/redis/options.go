package redis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// config is the configuration of one workload.
type config struct {
	place      database.Place
	settings   []database.Setting
	commands   []string // what rounds execute, in turn
	clients    int
	pipeline   int
	threads    int // of redis-benchmark; 1: its event loop only
	keys       int
	fullKeys   int // without the scale of a rehearsal
	valueBytes int
}

// known are commands that neither grow the data without bound nor shrink it.
var known = []string{"get", "set", "incr", "hset", "sadd", "zadd"}

var own = slices.Concat([]string{"clients", "commands", "disk", "endpoint", "keys", "pipeline", "threads", "value_size"}, database.EndpointNames, program.FileSystemNames)

// choices are the values of settings that are words.
var choices = map[string][]string{
	"appendonly":  {"yes", "no"},
	"appendfsync": {"always", "everysec", "no"},
	"maxmemory_policy": {"noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random",
		"volatile-ttl"},
	"no_appendfsync_on_rewrite": {"yes", "no"},
}

var settings = database.Settings{Check: check, Names: []string{"appendfsync", "appendonly", "auto_aof_rewrite_percentage", "io_threads", "maxmemory",
	"maxmemory_policy", "no_appendfsync_on_rewrite"}}

func check(name, value string) string {
	if words := choices[name]; words != nil {
		if !slices.Contains(words, value) {
			return strconv.Quote(value) + " is not " + strings.Join(words, ", ")
		}
		return ""
	}
	if name == "maxmemory" {
		if n, err := unit.ParseBytes(value); err != nil || n < unit.MiB || strings.Trim(value, "0123456789") == "" {
			return strconv.Quote(value) + " is not a size such as 2GiB, of 1MiB or more"
		}
		return ""
	}
	most, least := 1000, 0
	if name == "io_threads" {
		most, least = 64, 1
	}
	if n, err := strconv.Atoi(value); err != nil || n < least || n > most {
		return strconv.Quote(value) + " is not a number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	}
	return ""
}

// Bounds and defaults of options.
const (
	clientsDefault  = 16
	clientsMax      = 1000
	pipelineMax     = 1000
	threadsMax      = 64
	keysDefault     = 100_000
	keysMax         = 1_000_000_000
	valueDefault    = 100
	valueMax        = 16 * unit.MiB
	rehearsalKeys   = 1000 // at least
	keyOverhead     = 100  // bytes of memory of a key beside its value, about
	recordOverhead  = 60   // bytes of a SET in the append-only file beside its value, about
	optionsHint     = "see docs/guides/databases.md#redis"
	connectionSpare = 20
)

// parse reads the options of a workload.
func parse(w *load.Workload) (*config, error) {
	o := &load.Options{Values: w.Options}
	c := &config{clients: o.Integer("clients", clientsDefault, clientsMax), pipeline: o.Integer("pipeline", 1, pipelineMax),
		threads: o.Integer("threads", 1, threadsMax), keys: o.Integer("keys", keysDefault, keysMax), valueBytes: valueDefault}
	c.place = database.ReadPlace(o, w, "disk")
	c.settings = settings.Read(o, c.place, own)
	if text, given := o.Values["value_size"]; given {
		n, err := unit.ParseBytes(text)
		if err != nil || n < 1 || n > valueMax {
			o.Fault("value_size", "value_size: %q is not a size from 1 B to %s", text, unit.FormatBytes(valueMax))
		}
		c.valueBytes = int(n)
	}
	words := strings.FieldsFunc(cmp.Or(o.Values["commands"], "get, set"), func(r rune) bool { return r == ',' || r == ' ' })
	for _, word := range words {
		if word = strings.ToLower(word); !slices.Contains(known, word) {
			o.Fault("commands", "commands: %q is not %s", word, strings.Join(known, ", "))
		} else if slices.Contains(c.commands, word) {
			o.Fault("commands", "commands: %s is listed twice", word)
		}
		c.commands = append(c.commands, word)
	}
	if len(words) == 0 {
		o.Fault("commands", "commands: none is listed")
	}
	if database.Value(c.settings, "appendfsync") != "" && !c.appends() {
		o.Fault("appendfsync", "appendfsync: without appendonly: yes the server writes no file")
	}
	if c.threads > c.clients {
		o.Fault("threads", "threads: %d are more than clients: %d", c.threads, c.clients)
	}
	if w.Config != "" {
		o.Fault("", "redis has no configuration file")
	}
	c.fullKeys = c.keys
	if f := w.Scale.Factor; f > 0 && f < 1 {
		c.keys = min(c.keys, max(rehearsalKeys, int(float64(c.keys)*f)))
	}
	return c, o.Err(w.Name, optionsHint)
}

// appends reports whether the server has an append-only file.
func (c *config) appends() bool { return database.Value(c.settings, "appendonly") == "yes" }

// waits reports whether commands wait for the disk.
func (c *config) waits() bool {
	return c.appends() && database.Value(c.settings, "appendfsync") == "always" && slices.ContainsFunc(c.commands, writes)
}

func writes(command string) bool { return command != "get" }

// dataBytes is what a number of keys takes in memory, about.
func (c *config) dataBytes(keys int) int64 { return int64(keys) * int64(c.valueBytes+keyOverhead) }
