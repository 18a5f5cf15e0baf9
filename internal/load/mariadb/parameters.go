package mariadb

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/unit"
)

// parameter is what a parameter of the server may be: a word, or a size or number within bounds. The server starts with some values that it does not
// know, and with others than were set: it only writes a warning to its log.
type parameter struct {
	words     []string
	size      bool
	low, high float64
}

var switches = []string{"on", "off", "true", "false", "1", "0"}

// parameters are those of the server that a scenario may set. None of them runs a command or reads a file. Bounds are those of MariaDB 10.11,
// or wider if earlier versions have others.
var parameters = map[string]parameter{
	"innodb_adaptive_flushing":       {words: switches},
	"innodb_buffer_pool_size":        {size: true, low: 2 << 20, high: 1 << 62},
	"innodb_deadlock_detect":         {words: switches},
	"innodb_doublewrite":             {words: switches},
	"innodb_flush_log_at_trx_commit": {high: 3},
	"innodb_flush_method":            {words: []string{"fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT", "O_DIRECT_NO_FSYNC"}},
	"innodb_flush_neighbors":         {high: 2},
	"innodb_io_capacity":             {low: 100, high: 1<<32 - 1},
	"innodb_io_capacity_max":         {low: 100, high: 1<<32 - 1},
	"innodb_lock_wait_timeout":       {high: 100_000_000},
	"innodb_log_buffer_size":         {size: true, low: 256 << 10, high: 1 << 31},
	"innodb_log_file_size":           {size: true, low: 1 << 20, high: 1 << 62},
	"innodb_max_dirty_pages_pct":     {high: 99.999},
	"innodb_purge_threads":           {low: 1, high: 32},
	"innodb_read_io_threads":         {low: 1, high: 64},
	"innodb_use_native_aio":          {words: switches},
	"innodb_write_io_threads":        {low: 1, high: 64},
	"large_pages":                    {words: switches},
	"log_bin":                        {words: []string{"on", "off"}},
	"sync_binlog":                    {high: 1<<32 - 1},
	"thread_handling":                {words: []string{"one-thread-per-connection", "no-threads", "pool-of-threads"}},
	"transaction_isolation":          {words: []string{"READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"}},
}

var settings = database.Settings{Check: check, Names: slices.Sorted(maps.Keys(parameters))}

var (
	plainNumber = regexp.MustCompile(`^\d+$`)
	decimal     = regexp.MustCompile(`^\d{1,15}(\.\d{1,6})?$`)
)

func check(name, value string) string {
	p := parameters[name]
	switch {
	case p.words != nil:
		if !slices.ContainsFunc(p.words, func(word string) bool { return strings.EqualFold(word, value) }) || name == "log_bin" && !slices.Contains(p.words, value) {
			return fmt.Sprintf("%q is not %s", value, strings.Join(p.words, ", "))
		}
		return ""
	case p.size:
		n, err := unit.ParseBytes(value)
		if err != nil || plainNumber.MatchString(value) {
			return fmt.Sprintf("%q is not a size such as 2GiB", value)
		}
		if float64(n) < p.low || float64(n) > p.high {
			return fmt.Sprintf("%q is not a size from %s to %s", value, unit.FormatBytes(int64(p.low)), unit.FormatBytes(int64(p.high)))
		}
		return ""
	}
	whole := p.high == float64(int64(p.high))
	if n, err := strconv.ParseFloat(value, 64); err != nil || n < p.low || n > p.high || !decimal.MatchString(value) || whole && !plainNumber.MatchString(value) {
		return fmt.Sprintf("%q is not a number from %s to %s", value, number(p.low), number(p.high))
	}
	return ""
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
