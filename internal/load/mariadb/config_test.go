package mariadb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/mariadb"
)

// MariaDB starts with values that it does not know and with numbers beyond its bounds, and uses others: they are refused before.
func TestParameters(t *testing.T) {
	for name, values := range map[string]struct{ good, bad string }{
		"innodb_buffer_pool_size": {"8GiB 128M", "-1 0 0MiB 1KiB 4096 much -2GiB"}, "innodb_log_file_size": {"96MiB", "1KiB -1"},
		"innodb_flush_method": {"O_DIRECT o_direct fsync", "bogus 1"}, "innodb_doublewrite": {"on OFF 0", "maybe"}, "log_bin": {"on off", "ON binlog"},
		"innodb_purge_threads": {"1 32", "0 -1 33 1e30 1.5 four"}, "innodb_max_dirty_pages_pct": {"0 75.5 90", "100 -1 1e1"}, "innodb_io_capacity": {"200 20000", "0 abc 1e30"},
		"transaction_isolation": {"READ-COMMITTED serializable", "none"}, "thread_handling": {"pool-of-threads", "many"}, "innodb_flush_log_at_trx_commit": {"0 1 2 3", "4 on"},
	} {
		check := func(value string) error {
			o := &load.Options{Values: map[string]string{name: value}}
			mariadb.ReadConfig(o, &load.Workload{Options: o.Values, Devices: []load.Device{{Name: "/dev/sdb"}}}, nil)
			return o.Err("w", "")
		}
		for _, value := range strings.Fields(values.good) {
			if err := check(value); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, value := range strings.Fields(values.bad) {
			var faults load.OptionFaults
			if err := check(value); !errors.As(err, &faults) || faults[0].Option != name || !strings.Contains(faults[0].Text, value) {
				t.Errorf("%s: %s: %v", name, value, err)
			}
		}
	}
}
