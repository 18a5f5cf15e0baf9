package mariadb

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
	database.Place // its LogDisk has the redo log of InnoDB
	Settings       []database.Setting
	Clients        int // connections at a time
	scaled         bool
	listen         database.Address
}

// PlaceNames are the options that say where the database is.
var PlaceNames = slices.Concat([]string{"disk", "endpoint", "redo_disk"}, database.EndpointNames, program.FileSystemNames)

// Sizes of a server.
const (
	poolDefault = 128 * unit.MiB // innodb_buffer_pool_size
	logDefault  = 96 * unit.MiB  // innodb_log_file_size
	poolLeast   = 16 * unit.MiB  // of a rehearsal
	logLeast    = 32 * unit.MiB
)

// ReadConfig reads the place of the database, and takes all options but the generator's own for parameters of the server.
func ReadConfig(o *load.Options, w *load.Workload, own []string) Config {
	c := Config{Place: database.ReadPlace(o, w, "redo_disk")}
	c.Settings = settings.Read(o, c.Place, slices.Concat(own, PlaceNames))
	if _, given := o.Values["sync_binlog"]; given && database.Value(c.Settings, "log_bin") != "on" && c.Endpoint == "" {
		o.Fault("sync_binlog", "sync_binlog: without log_bin: on the server has no binary log")
	}
	if f := w.Scale.Factor; f > 0 && f < 1 && c.Endpoint == "" {
		c.shrink(f)
	}
	return c
}

// size is that of a setting, or what the server has by default.
func (c *Config) size(name string, fallback int64) int64 {
	if n, err := unit.ParseBytes(database.Value(c.Settings, name)); err == nil {
		return n
	}
	return fallback
}

// PoolBytes is the size of the buffer pool.
func (c *Config) PoolBytes() int64 { return c.size("innodb_buffer_pool_size", poolDefault) }

func (c *Config) logBytes() int64 { return c.size("innodb_log_file_size", logDefault) }

// shrink fits memory and log of the server to the data of a rehearsal.
func (c *Config) shrink(factor float64) {
	c.scaled = true
	scaled := func(n, least int64) string {
		return fmt.Sprintf("%dMiB", max(least, int64(float64(n)*factor))/unit.MiB)
	}
	list := []database.Setting{{Name: "innodb_buffer_pool_size", Value: scaled(c.PoolBytes(), poolLeast)},
		{Name: "innodb_log_file_size", Value: scaled(c.logBytes(), logLeast)}}
	for _, s := range c.Settings {
		if s.Name != list[0].Name && s.Name != list[1].Name {
			list = append(list, s)
		}
	}
	c.Settings = list
}

// PlanData notes in a plan where the data goes and how much it is.
func (c *Config) PlanData(w *load.Workload, p *load.Plan, d database.Data) error {
	return c.Plan(w, p, d, database.Log{Name: "redo log", Bytes: c.logBytes(), Setting: "innodb_log_file_size", Scaled: c.scaled})
}
