package postgres

import (
	"fmt"
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
