package iojob_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// What fio-plot 1.1 reads of a document and of logs, so that it draws from ours: the options of a job after those of
// [global] are merged in, by direction and job the keys of its charts, and log files by their names. A missing key ends it.
func TestFioPlotFindsWhatItReads(t *testing.T) {
	dir := t.TempDir()
	text := fmt.Sprintf(`[global]
ioengine=io_uring
bs=4k
rw=randread
iodepth=4
numjobs=2
size=256k
filename=%s/data
time_based
runtime=1200ms
group_reporting
log_avg_msec=200
write_bw_log=%[1]s/randread-iodepth-4-numjobs-2
write_lat_log=%[1]s/randread-iodepth-4-numjobs-2
write_iops_log=%[1]s/randread-iodepth-4-numjobs-2
[iotest]
`, dir)
	text, file := parse(t, dir, text)
	report := runIn(t, dir, text)
	var out bytes.Buffer
	if err := report.WriteJSON(&out, labels(file)); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Version string            `json:"fio version"`
		Global  map[string]string `json:"global options"`
		Jobs    []map[string]any  `json:"jobs"`
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	job := doc.Jobs[0]
	options, ok := job["job options"].(map[string]any)
	if !ok || !strings.HasPrefix(doc.Version, "fio-") {
		t.Fatalf("no options of the job, or version %q", doc.Version)
	}
	for _, key := range []string{"rw", "iodepth", "numjobs", "bs"} {
		value := doc.Global[key]
		if own, ok := options[key].(string); ok {
			value = own
		}
		if _, err := strconv.Atoi(value); value == "" || (key == "iodepth" || key == "numjobs") && err != nil {
			t.Errorf("option %s is %q", key, value)
		}
	}
	read := job["read"].(map[string]any)
	for _, path := range []string{"bw", "iops", "iops_stddev", "lat_ns.mean", "lat_ns.stddev"} {
		if v, ok := at(read, path).(float64); !ok || v <= 0 {
			t.Errorf("read.%s is %v", path, at(read, path))
		}
	}
	for _, key := range []string{"usr_cpu", "sys_cpu"} {
		if _, ok := job[key].(float64); !ok {
			t.Errorf("%s is %v", key, job[key])
		}
	}
	classes := []string{"2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"}
	sum := 0.0
	for key, names := range map[string][]string{"latency_ns": classes, "latency_us": classes, "latency_ms": append(classes, "2000", ">=2000")} {
		shares := job[key].(map[string]any)
		for _, name := range names {
			share, ok := shares[name].(float64)
			if !ok {
				t.Errorf("%s has no %s", key, name)
			}
			sum += share
		}
	}
	if sum < 99.9 || sum > 100.1 {
		t.Errorf("the shares of latencies add up to %v", sum)
	}
	// Its own search for the logs of a depth and a number of jobs; N is the clone.
	for _, kind := range []string{"bw", "iops", "lat", "clat", "slat"} {
		found := 0
		for _, name := range logNames(t, dir) {
			if !regexp.MustCompile("^randread-iodepth-4-numjobs-2_" + kind).MatchString(name) {
				continue
			}
			found++
			lines := logLines(t, filepath.Join(dir, name))
			if kind != "slat" && len(lines) == 0 {
				t.Errorf("%s is empty", name)
			}
			for _, line := range lines {
				if len(line) != 5 || line[2] != 0 {
					t.Errorf("%s: line %v", name, line)
				}
			}
		}
		if found != 2 {
			t.Errorf("%d logs of %s", found, kind)
		}
	}
}

// at follows a path of keys.
func at(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[key]
	}
	return v
}
