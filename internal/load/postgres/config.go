package postgres

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// Config is the database that a workload asks for.
type Config struct {
	Endpoint string // "": a server of its own
	Disk     string // device of the data, "" with an endpoint
	WALDisk  string // device of the WAL; the same as Disk if it was not set
	Settings []Setting
	Clients  int // connections at a time
	// LazyWAL lets only commits write the log, and no process beside them.
	LazyWAL bool

	scaled bool // for a rehearsal
	shared bool // all VMs have the same endpoint
}

// Setting is a parameter of the server.
type Setting struct{ Name, Value string }

// PlaceNames are the options that say where the database is.
var PlaceNames = []string{"disk", "endpoint", "wal_disk"}

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

var (
	settingPattern = regexp.MustCompile(`^[A-Za-z0-9_.]{1,40}$`)
	numberPattern  = regexp.MustCompile(`^[0-9.]*[1-9][0-9.]*$`)
)

// ordinalMark in the name of an endpoint is replaced by the number of the VM in its group, from 1.
const ordinalMark = "{n}"

// ReadConfig reads the place of the database, and takes all options but the generator's own for parameters of the server.
func ReadConfig(o *load.Options, w *load.Workload, own []string) Config {
	name := o.Values["endpoint"]
	c := Config{Endpoint: strings.ReplaceAll(name, ordinalMark, strconv.Itoa(w.Ordinal+1)), shared: !strings.Contains(name, ordinalMark)}
	c.readPlace(o, w)
	known := slices.Concat(own, PlaceNames)
	for _, name := range slices.Sorted(maps.Keys(o.Values)) {
		value := o.Values[name]
		switch {
		case slices.Contains(known, name):
		case !slices.Contains(SettingNames, name):
			hint := ""
			if near := diag.Nearest(name, slices.Concat(known, SettingNames)); near != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			o.Fault(name, "no option %q%s", name, hint)
		case c.Endpoint != "":
			o.Fault(name, "%s: the server of an endpoint has its own settings", name)
		case !settingPattern.MatchString(value):
			o.Fault(name, "%s: %q is not a value of a setting", name, value)
		case sizeNames[name] != "" && numberPattern.MatchString(value):
			o.Fault(name, "%s: %q has no unit, and PostgreSQL would count in units of %s: write a size such as 2GB", name, value, sizeNames[name])
		default:
			c.Settings = append(c.Settings, Setting{name, value})
		}
	}
	c.shrink(w.Scale.Factor)
	return c
}

// readPlace finds the disks of the server, or the endpoint.
func (c *Config) readPlace(o *load.Options, w *load.Workload) {
	if c.Endpoint != "" {
		if !program.EndpointName(c.Endpoint) {
			o.Fault("endpoint", "endpoint: %q is not a name of letters, digits, - and _", c.Endpoint)
		}
		for _, name := range []string{"disk", "wal_disk"} {
			if _, given := o.Values[name]; given {
				o.Fault(name, "%s: an endpoint has its own disks", name)
			}
		}
		return
	}
	var names []string
	for _, d := range w.Devices {
		names = append(names, d.Name)
	}
	if len(names) == 0 {
		o.Fault("", "the VM group has no data disk for a server, and there is no endpoint")
		return
	}
	c.Disk = cmp.Or(o.Values["disk"], names[0])
	c.WALDisk = cmp.Or(o.Values["wal_disk"], c.Disk)
	for option, disk := range map[string]string{"disk": c.Disk, "wal_disk": c.WALDisk} {
		if _, given := o.Values[option]; given && !slices.Contains(names, disk) {
			o.Fault(option, "disk %q: the VM group has %s", disk, strings.Join(names, ", "))
		}
	}
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
func (c *Config) Setting(name string) string {
	if i := slices.IndexFunc(c.Settings, func(s Setting) bool { return s.Name == name }); i >= 0 {
		return c.Settings[i].Value
	}
	return ""
}

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
	wal := Setting{"max_wal_size", scaled(c.walBytes(), walBytesLeast)}
	c.Settings = slices.DeleteFunc(c.Settings, func(s Setting) bool { return s.Name == "max_wal_size" || s.Name == "min_wal_size" })
	c.Settings = append(c.Settings, wal, Setting{"min_wal_size", "32MB"})
	for i, s := range c.Settings {
		if n, err := unit.ParseBytes(s.Value); err == nil && s.Name == "shared_buffers" {
			c.Settings[i].Value = scaled(n, buffersLeast)
		}
	}
}

// Data is what a load keeps in its database.
type Data struct {
	Text  string // "scale 3424, 50 GiB"
	Bytes int64
	// FullBytes are those without the scale of a rehearsal.
	FullBytes int64
}

// PlanData notes in a plan where the data goes and how much it is.
func (c *Config) PlanData(w *load.Workload, p *load.Plan, d Data) error {
	if c.Endpoint != "" {
		p.Program.Data = append(p.Program.Data, program.EndpointFacts(c.Endpoint))
		if c.shared {
			p.Replaces = fmt.Sprintf("the tables of endpoint %q", c.Endpoint)
		}
		return nil
	}
	wal := c.walBytes()
	p.Program.Data = append(p.Program.Data,
		fmt.Sprintf("%s: %s", c.Disk, d.Text), fmt.Sprintf("%s: WAL, about %s", c.WALDisk, unit.FormatBytes(wal)))
	if c.Disk == c.WALDisk {
		p.Extents = []extent.Extent{{Device: c.Disk, Length: d.Bytes + wal, Writes: true}}
	} else {
		p.Extents = []extent.Extent{{Device: c.Disk, Length: d.Bytes, Writes: true}, {Device: c.WALDisk, Length: wal, Writes: true}}
	}
	if c.scaled {
		p.ScaledFrom = d.FullBytes
	}
	p.BlockBytesMax = max(p.BlockBytesMax, rehearsalBlockBytes)
	for _, e := range p.Extents {
		if disk, _ := w.Device(e.Device); disk.SizeBytes > 0 && e.Length > disk.SizeBytes {
			return &diag.Error{Code: "device-too-small", Exit: diag.ExitData,
				Message: fmt.Sprintf("disk %s has %s and the database takes %s", disk.Name, unit.FormatBytes(disk.SizeBytes), unit.FormatBytes(e.Length)),
				Hint:    "use larger disks, less data, or a lower max_wal_size"}
		}
	}
	return nil
}

// rehearsalBlockBytes is the largest "block" of a database in a plan: a rehearsal shrinks a disk to no less than 64 of them, which is enough
// for the smallest database.
const rehearsalBlockBytes = 4 * unit.MiB
