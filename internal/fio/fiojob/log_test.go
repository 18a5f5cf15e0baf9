package fiojob_test

import (
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
)

func TestLogs(t *testing.T) {
	for _, c := range []struct {
		options string
		want    fiojob.Logs
	}{
		{"", fiojob.Logs{}},
		{"write_bw_log\nwrite_iops_log=\nwrite_lat_log=a/b\n", fiojob.Logs{
			Bandwidth: fiojob.Log{On: true}, IOPS: fiojob.Log{On: true}, Latency: fiojob.Log{On: true, Prefix: "a/b"},
		}},
		{"write_hist_log=h\nlog_hist_msec=500\nlog_hist_coarseness=3\nlog_avg_msec=1k\n", fiojob.Logs{
			Histogram: fiojob.Log{On: true, Prefix: "h"}, HistogramMillis: 500, Coarseness: 3, AverageMillis: 1024,
		}},
		{"log_max_value=1\nper_job_logs=0\nlog_offset=1\nlog_prio=1\nlog_unix_epoch=1\n", fiojob.Logs{
			Window: "max", Shared: true, Offset: true, Priority: true, Epoch: true,
		}},
		{"log_window_value=both\nlog_alternate_epoch=1\nlog_alternate_epoch_clock_id=1\n", fiojob.Logs{
			Window: "both", Epoch: true, Clock: 1,
		}},
		{"log_window_value=1\n", fiojob.Logs{Window: "max"}},
		{"log_window_value=max\nlog_window_value=0\n", fiojob.Logs{Window: "avg"}},
		{"log_max_value=both\n", fiojob.Logs{Window: "both"}},
		{"log_max_value=yes\n", fiojob.Logs{Window: "max"}},
	} {
		file, list := fiojob.Parse("log.fio", "[j]\nsize=1m\n"+c.options, fiojob.Options{})
		if list.HasErrors() {
			t.Errorf("%q: %v", c.options, list.Err())
			continue
		}
		if got := file.Jobs()[0].Logs; got != c.want {
			t.Errorf("%q: got %+v, want %+v", c.options, got, c.want)
		}
	}
}

// What would leave a log empty or meaningless in fio is an error here.
func TestLogsThatMakeNoSense(t *testing.T) {
	for _, options := range []string{
		"log_hist_coarseness=7", "log_window_value=median", "log_window_value=2", "log_max_value=median", "log_max_value=2", "log_avg_msec=-1", "per_job_logs=2", "log_alternate_epoch_clock_id=99",
	} {
		if _, list := fiojob.Parse("log.fio", "[j]\nsize=1m\n"+options+"\n", fiojob.Options{}); !list.HasErrors() {
			t.Errorf("%s is accepted", options)
		}
	}
}
