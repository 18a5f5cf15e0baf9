package postgres

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// Config is the database that a workload asks for.
type Config struct {
	database.Place // its LogDisk has the WAL
	Settings       []Setting
	Clients        int // connections at a time
	// LazyWAL lets only commits write the log, and no process beside them.
	LazyWAL bool

	scaled bool // for a rehearsal
	listen database.Address
}

// Setting is a parameter of the server.
type Setting = database.Setting

// PlaceNames are the options that say where the database is.
var PlaceNames = slices.Concat([]string{"disk", "endpoint", "wal_disk"}, database.EndpointNames, program.FileSystemNames)

// SettingNames are the parameters of the server that a scenario may set. None of them runs a command or reads a file.
var SettingNames = []string{
	"autovacuum", "autovacuum_naptime", "backend_flush_after", "bgwriter_delay", "bgwriter_lru_maxpages", "checkpoint_completion_target",
	"checkpoint_flush_after", "checkpoint_timeout", "commit_delay", "effective_cache_size", "effective_io_concurrency", "full_page_writes",
	"huge_pages", "jit", "maintenance_work_mem", "max_wal_size", "min_wal_size", "random_page_cost", "shared_buffers", "synchronous_commit",
	"track_io_timing", "wal_buffers", "wal_compression", "wal_sync_method", "work_mem",
}

// sizeNames are the settings that are sizes. PostgreSQL counts a number without a unit in another unit for each of them.
var sizeNames = map[string]string{
	"backend_flush_after": "8kB", "checkpoint_flush_after": "8kB", "effective_cache_size": "8kB", "maintenance_work_mem": "kB", "max_wal_size": "MB",
	"min_wal_size": "MB", "shared_buffers": "8kB", "wal_buffers": "8kB", "work_mem": "kB",
}

// timeNames are the settings that are times, with the unit in which PostgreSQL counts a number without one.
var timeNames = map[string]string{"autovacuum_naptime": "s", "bgwriter_delay": "ms", "checkpoint_timeout": "s", "commit_delay": "us"}

var (
	numberPattern = regexp.MustCompile(`^[0-9.]*[1-9][0-9.]*$`)
	plainPattern  = regexp.MustCompile(`^(0|-1)$`) // off, and automatic
	// sizePattern has the units that PostgreSQL knows. Like Bragg, it counts them in powers of 1024.
	sizePattern = regexp.MustCompile(`^\d+(B|kB|MB|GB|TB)$`)
	timePattern = regexp.MustCompile(`^\d+(\.\d+)? ?(us|ms|s|min|h|d)$`)
)

// checkSetting returns what is wrong with a value.
func checkSetting(name, value string) string {
	switch {
	case timeNames[name] == "" || plainPattern.MatchString(value) || timePattern.MatchString(value):
	case numberPattern.MatchString(value):
		return fmt.Sprintf("%q has no unit, and PostgreSQL would count in %s: write a time such as %s%s", value, timeNames[name], value, timeNames[name])
	default:
		return fmt.Sprintf("%q is not a time in us, ms, s, min, h or d, such as 5min", value)
	}
	if sizeNames[name] == "" || plainPattern.MatchString(value) {
		return ""
	}
	if numberPattern.MatchString(value) {
		return fmt.Sprintf("%q has no unit, and PostgreSQL would count in units of %s: write a size such as 2GB", value, sizeNames[name])
	}
	if _, err := unit.ParseBytes(value); err != nil {
		return fmt.Sprintf("%q is not a size such as 2GB", value)
	}
	return ""
}

// inUnits writes sizes in units of PostgreSQL: GiB is GB there.
func inUnits(s Setting) Setting {
	n, err := unit.ParseBytes(s.Value)
	switch {
	case sizeNames[s.Name] == "" || err != nil || plainPattern.MatchString(s.Value) || sizePattern.MatchString(s.Value):
	case n%unit.MiB == 0:
		s.Value = fmt.Sprintf("%dMB", n/unit.MiB)
	case n%unit.KiB == 0:
		s.Value = fmt.Sprintf("%dkB", n/unit.KiB)
	default:
		s.Value = fmt.Sprintf("%dB", n)
	}
	return s
}

// ReadConfig reads the place of the database, and takes all options but the generator's own for parameters of the server.
func ReadConfig(o *load.Options, w *load.Workload, own []string) Config {
	c := Config{Place: database.ReadPlace(o, w, "wal_disk")}
	c.Settings = database.Settings{Names: SettingNames, Check: checkSetting}.Read(o, c.Place, slices.Concat(own, PlaceNames))
	for i, s := range c.Settings {
		c.Settings[i] = inUnits(s)
	}
	c.shrink(w.Scale.Factor)
	return c
}

const (
	// walBytesDefault is PostgreSQL's max_wal_size, which it may exceed for a while.
	walBytesDefault = unit.GiB
	// walBytesLeast is the smallest max_wal_size of a rehearsal: PostgreSQL requires two segments.
	walBytesLeast = 64 * unit.MiB
	// buffersLeast is the smallest shared_buffers of a rehearsal.
	buffersLeast = 16 * unit.MiB
)

// Setting returns the value that the scenario gives to a parameter, "" for none.
func (c *Config) Setting(name string) string { return database.Value(c.Settings, name) }

// walBytes is the planned size of the WAL.
func (c *Config) walBytes() int64 {
	if n, err := unit.ParseBytes(c.Setting("max_wal_size")); err == nil {
		return max(n, walBytesLeast)
	}
	return walBytesDefault
}

// shrink fits memory and WAL of the server to the data of a rehearsal.
func (c *Config) shrink(factor float64) {
	if factor <= 0 || factor >= 1 || c.Endpoint != "" {
		return
	}
	c.scaled = true
	scaled := func(n, least int64) string {
		return fmt.Sprintf("%dMB", max(least, int64(float64(n)*factor))/unit.MiB)
	}
	wal := Setting{Name: "max_wal_size", Value: scaled(c.walBytes(), walBytesLeast)}
	c.Settings = slices.DeleteFunc(c.Settings, func(s Setting) bool { return s.Name == "max_wal_size" || s.Name == "min_wal_size" })
	c.Settings = append(c.Settings, wal, Setting{Name: "min_wal_size", Value: "32MB"})
	for i, s := range c.Settings {
		if n, err := unit.ParseBytes(s.Value); err == nil && s.Name == "shared_buffers" {
			c.Settings[i].Value = scaled(n, buffersLeast)
		}
	}
}

// Data is what a load keeps in its database.
type Data = database.Data

// PlanData notes in a plan where the data goes and how much it is.
func (c *Config) PlanData(w *load.Workload, p *load.Plan, d Data) error {
	return c.Plan(w, p, d, database.Log{Name: "WAL", Bytes: c.walBytes(), Setting: "max_wal_size", Scaled: c.scaled})
}
