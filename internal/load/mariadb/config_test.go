package mariadb_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/mariadb"
)

// MariaDB starts with values that it does not know and with numbers beyond its bounds, and uses others: they are refused before.
func TestParameters(t *testing.T) {
	loadtest.CheckValues(t, map[string]loadtest.Values{
		"innodb_buffer_pool_size": {"8GiB 128M", "-1 0 0MiB 1KiB 4096 much -2GiB"}, "innodb_log_file_size": {"96MiB", "1KiB -1"},
		"innodb_flush_method": {"O_DIRECT o_direct fsync", "bogus 1"}, "innodb_doublewrite": {"on OFF 0", "maybe"}, "log_bin": {"on off", "ON binlog"},
		"innodb_purge_threads": {"1 32", "0 -1 33 1e30 1.5 four"}, "innodb_max_dirty_pages_pct": {"0 75.5 90", "100 -1 1e1"}, "innodb_io_capacity": {"200 20000", "0 abc 1e30"},
		"transaction_isolation": {"READ-COMMITTED serializable", "none"}, "thread_handling": {"pool-of-threads", "many"}, "innodb_flush_log_at_trx_commit": {"0 1 2 3", "4 on"},
	}, func(o *load.Options, w *load.Workload) { mariadb.ReadConfig(o, w, nil) })
}
