package postgres

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/unit"
)

// parameter is what a parameter of the server may be. The bounds are those of PostgreSQL 13 to 17; what a version lacks, its server says itself.
type parameter struct {
	words     []string // its values; "number", "size" and "time" are those below
	unit      string   // in which PostgreSQL counts a number without one
	low, high float64  // in bytes, microseconds or as it is; high 0: without a bound
	plain     []string // values without a unit: off, and automatic
}

var (
	switches = []string{"on", "off", "true", "false", "yes", "no", "1", "0"}
	zero     = []string{"0"}
)

// parameters are those of the server that a scenario may set. None of them runs a command or reads a file.
var parameters = map[string]parameter{
	"autovacuum":                   {words: switches},
	"autovacuum_naptime":           {words: kindTime, unit: "s", low: 1e6, high: 2_147_483e6},
	"backend_flush_after":          {words: kindSize, unit: "8kB", high: 2 << 20, plain: zero},
	"bgwriter_delay":               {words: kindTime, unit: "ms", low: 10e3, high: 10e6},
	"bgwriter_lru_maxpages":        {words: kindNumber, high: 1_073_741_823},
	"checkpoint_completion_target": {words: kindNumber, high: 1},
	"checkpoint_flush_after":       {words: kindSize, unit: "8kB", high: 2 << 20, plain: zero},
	"checkpoint_timeout":           {words: kindTime, unit: "s", low: 30e6, high: 86_400e6},
	"commit_delay":                 {words: kindTime, unit: "us", high: 100e3, plain: zero},
	"effective_cache_size":         {words: kindSize, unit: "8kB", low: 8 << 10, high: pagesMax},
	"effective_io_concurrency":     {words: kindNumber, high: 1000},
	"full_page_writes":             {words: switches},
	"huge_pages":                   {words: slices.Concat(switches, []string{"try"})},
	"jit":                          {words: switches},
	"maintenance_work_mem":         {words: kindSize, unit: "kB", low: 64 << 10, high: kilobytesMax},
	"max_wal_size":                 {words: kindSize, unit: "MB", low: walSegments, high: megabytesMax},
	"min_wal_size":                 {words: kindSize, unit: "MB", low: walSegments, high: megabytesMax},
	"random_page_cost":             {words: kindNumber},
	"shared_buffers":               {words: kindSize, unit: "8kB", low: 128 << 10, high: pagesMax / 2},
	"synchronous_commit":           {words: slices.Concat(switches, []string{"local", "remote_write", "remote_apply"})},
	"track_io_timing":              {words: switches},
	"wal_buffers":                  {words: kindSize, unit: "8kB", low: 8 << 10, high: 2<<30 - 8<<10, plain: []string{"-1"}},
	"wal_compression":              {words: slices.Concat(switches, []string{"pglz", "lz4", "zstd"})},
	"wal_sync_method":              {words: []string{"fdatasync", "fsync", "open_datasync", "open_sync"}},
	"work_mem":                     {words: kindSize, unit: "kB", low: 64 << 10, high: kilobytesMax},
}

// Kinds of values that are not words.
var (
	kindNumber = []string{"number"}
	kindSize   = []string{"size"}
	kindTime   = []string{"time"}
)

// The largest sizes: PostgreSQL counts them in 31 bits, and shared_buffers in 30.
const (
	pagesMax     = (1 << 31) * (8 << 10)
	kilobytesMax = (1 << 31) * (1 << 10)
	megabytesMax = (1 << 31) * (1 << 20)
	// walSegments are two segments of the WAL, the least that a server starts with.
	walSegments = 32 << 20
)

// SettingNames are the names of all parameters.
var SettingNames = slices.Sorted(maps.Keys(parameters))

var (
	numberPattern = regexp.MustCompile(`^[0-9.]*[1-9][0-9.]*$`)
	// sizePattern has the units that PostgreSQL knows. Like Bragg, it counts them in powers of 1024.
	sizePattern = regexp.MustCompile(`^\d+(B|kB|MB|GB|TB)$`)
	timePattern = regexp.MustCompile(`^(\d+(?:\.\d+)?) ?(us|ms|s|min|h|d)$`)
	micros      = map[string]float64{"us": 1, "ms": 1e3, "s": 1e6, "min": 60e6, "h": 3600e6, "d": 86_400e6}
)

// checkSetting returns what is wrong with a value.
func checkSetting(name, value string) string {
	p := parameters[name]
	if slices.Contains(p.plain, value) {
		return ""
	}
	switch p.words[0] {
	case kindNumber[0]:
		return p.checkNumber(value)
	case kindTime[0]:
		return p.checkTime(value)
	case kindSize[0]:
		return p.checkSize(value)
	}
	if !slices.Contains(p.words, strings.ToLower(value)) {
		return fmt.Sprintf("%q is not one of %s", value, strings.Join(p.words, ", "))
	}
	return ""
}

func (p *parameter) checkNumber(value string) string {
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || !(n >= p.low):
		return fmt.Sprintf("%q is not a number of at least %g", value, p.low)
	case p.high > 0 && n > p.high:
		return fmt.Sprintf("%q is not a number from %g to %g", value, p.low, p.high)
	}
	return ""
}

func (p *parameter) checkTime(value string) string {
	m := timePattern.FindStringSubmatch(value)
	switch {
	case m == nil && numberPattern.MatchString(value):
		return fmt.Sprintf("%q has no unit, and PostgreSQL would count in %s: write a time such as %s%s", value, p.unit, value, p.unit)
	case m == nil:
		return fmt.Sprintf("%q is not a time in us, ms, s, min, h or d, such as 5min", value)
	}
	n, _ := strconv.ParseFloat(m[1], 64)
	if n *= micros[m[2]]; n < p.low || n > p.high {
		return fmt.Sprintf("%q is not from %g%s to %g%s", value, p.low/micros[p.unit], p.unit, p.high/micros[p.unit], p.unit)
	}
	return ""
}

func (p *parameter) checkSize(value string) string {
	if numberPattern.MatchString(value) {
		return fmt.Sprintf("%q has no unit, and PostgreSQL would count in units of %s: write a size such as 2GB", value, p.unit)
	}
	n, err := unit.ParseBytes(value)
	switch {
	case err != nil:
		return fmt.Sprintf("%q is not a size such as 2GB", value)
	case float64(n) < p.low:
		return fmt.Sprintf("%q is less than PostgreSQL takes: %s", value, unit.FormatBytes(int64(p.low)))
	case float64(n) > p.high:
		return fmt.Sprintf("%q is more than PostgreSQL takes: %s", value, unit.FormatBytes(int64(p.high)))
	}
	return ""
}

// inUnits writes sizes in units of PostgreSQL: GiB is GB there.
func inUnits(s Setting) Setting {
	p := parameters[s.Name]
	n, err := unit.ParseBytes(s.Value)
	switch {
	case p.unit == "" || p.words[0] != kindSize[0] || err != nil || slices.Contains(p.plain, s.Value) || sizePattern.MatchString(s.Value):
	case n%unit.MiB == 0:
		s.Value = fmt.Sprintf("%dMB", n/unit.MiB)
	case n%unit.KiB == 0:
		s.Value = fmt.Sprintf("%dkB", n/unit.KiB)
	default:
		s.Value = fmt.Sprintf("%dB", n)
	}
	return s
}
