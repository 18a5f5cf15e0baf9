package iojob_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/fio/iojob/fiolog"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/testreq"
)

// logNames lists the logs of a folder.
func logNames(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.log*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	slices.Sort(paths)
	return paths
}

// logLines reads one log, checks that all lines have the columns, and returns their numbers.
func logLines(t *testing.T, path string) [][]int64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]int64
	for line := range strings.Lines(string(text)) {
		var row []int64
		for field := range strings.SplitSeq(strings.TrimSuffix(line, "\n"), ", ") {
			n, err := strconv.ParseInt(field, 0, 64)
			if err != nil {
				t.Fatalf("%s: %q: %v", path, line, err)
			}
			row = append(row, n)
		}
		if len(out) > 0 && len(row) != len(out[0]) {
			t.Fatalf("%s: %d columns in %q, %d above", path, len(row), line, len(out[0]))
		}
		out = append(out, row)
	}
	return out
}

// runIn runs jobs whose logs and files go to a folder.
func runIn(t *testing.T, dir, text string) *fioreport.Report {
	t.Helper()
	_, file := parse(t, dir, text)
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: dir})
	if err != nil {
		t.Fatal(err)
	}
	if report.LogFault != "" {
		t.Fatal(report.LogFault)
	}
	return report
}

const logGlobal = "[global]\nioengine=io_uring\niodepth=4\nsize=256k\nbs=4k\nrw=randrw\n"

// Logs have the names of fio's, whatever the jobs say of them.
func TestLogsAreNamedLikeFios(t *testing.T) {
	for name, text := range map[string]string{
		"bare, empty and given":  "[one]\nnumjobs=2\nwrite_bw_log\nwrite_iops_log=\nwrite_lat_log=foo\nwrite_hist_log=h\nlog_hist_msec=100\n[two]\nwrite_bw_log=foo\n",
		"one for all":            "[one]\nnumjobs=2\nper_job_logs=0\nwrite_bw_log\nwrite_lat_log=foo\n[two]\nper_job_logs=0\nwrite_lat_log=foo\n",
		"name":                   "[one]\nname=other\nwrite_bw_log\n[none]\n[three]\nwrite_iops_log\n",
		"groups":                 "[one]\ngroup_reporting\nnumjobs=3\nwrite_iops_log=x\n[two]\nstonewall\nwrite_iops_log=x\n",
		"less latency":           "[one]\ndisable_slat=1\nwrite_lat_log=a\n[two]\ndisable_clat=1\nwrite_lat_log=b\n[three]\ngtod_reduce=1\nwrite_lat_log=c\nwrite_bw_log=c\n",
		"synchronous":            "[one]\nioengine=psync\niodepth=1\nwrite_lat_log\n",
		"histogram without time": "[one]\nwrite_hist_log=h\n",
	} {
		ours, theirs := t.TempDir(), t.TempDir()
		text = logGlobal + text
		runIn(t, ours, text)
		fio(t, theirs, text)
		if got, want := logNames(t, ours), logNames(t, theirs); !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s: got %v, fio makes %v", name, got, want)
		}
	}
}

// Each log has fio's columns, and a line for each operation.
func TestLogsHaveFiosColumns(t *testing.T) {
	for _, options := range []string{"", "log_offset=1\n", "log_prio=1\n", "log_offset=1\nlog_prio=1\n", "log_unix_epoch=1\n"} {
		ours, theirs := t.TempDir(), t.TempDir()
		text := logGlobal + "filename=@/file\n[j]\nwrite_bw_log=x\nwrite_lat_log=x\nwrite_iops_log=x\n" + options
		report := runIn(t, ours, text)
		fio(t, theirs, strings.ReplaceAll(text, "@", theirs))
		total := 0
		for d := range report.Rows[0].Directions {
			total += int(report.Rows[0].Directions[d].Operations)
		}
		for _, name := range logNames(t, theirs) {
			us, them := logLines(t, filepath.Join(ours, name)), logLines(t, filepath.Join(theirs, name))
			if len(us) != total || len(us) != len(them) {
				t.Errorf("%q: %s has %d lines, fio's %d, operations %d", options, name, len(us), len(them), total)
				continue
			}
			if len(us[0]) != len(them[0]) || us[0][3] != them[0][3] {
				t.Errorf("%q: %s: first line %v, fio's %v", options, name, us[0], them[0])
			}
			// Wall time of both is that of this test.
			if math.Abs(float64(us[0][0]-them[0][0])) > 600e3 {
				t.Errorf("%q: %s begins at %d, fio's at %d", options, name, us[0][0], them[0][0])
			}
			raw, err := os.ReadFile(filepath.Join(ours, name))
			if err != nil || strings.Contains(options, "prio") != strings.HasSuffix(string(raw), ", 0x0000\n") {
				t.Errorf("%q: %s ends in %q, %v", options, name, raw[len(raw)-12:], err)
			}
		}
	}
}

// Averaged logs and histograms add up to the operations of the report, the last piece included; bandwidth in units of
// 1024 bytes, as fio's averages have it.
func TestLogsAddUp(t *testing.T) {
	dir := t.TempDir()
	report := runIn(t, dir, logGlobal+`
filename=@/file
time_based
runtime=1130ms
ramp_time=100ms
rate_iops=2000,1000
[j]
numjobs=2
write_bw_log=x
write_lat_log=x
write_iops_log=x
write_hist_log=x
log_avg_msec=200
log_hist_msec=300
`)
	for i := range report.Rows {
		row := &report.Rows[i]
		n := strconv.Itoa(i + 1)
		path := func(kind string) string { return filepath.Join(dir, "x_"+kind+"."+n+".log") }
		for d := range 2 {
			operations, bytes := 0.0, 0.0
			for kind, sum := range map[string]*float64{"iops": &operations, "bw": &bytes} {
				last := int64(0)
				for _, line := range logLines(t, path(kind)) {
					if line[2] == int64(d) {
						*sum += float64(line[1]) * float64(line[0]-last) / 1000
						last = line[0]
					}
				}
			}
			dir := &row.Directions[d]
			if want := float64(dir.Operations); math.Abs(operations-want) > 0.01*want || want == 0 {
				t.Errorf("clone %d direction %d: the log says %v operations, the report %v", i, d, operations, want)
			}
			if want := float64(dir.Bytes) / 1024; math.Abs(bytes-want) > 0.01*want {
				t.Errorf("clone %d direction %d: the log says %v KiB, the report %v", i, d, bytes, want)
			}
			var logged uint64
			for _, line := range logLines(t, path("clat_hist")) {
				for k, count := range line[3:] {
					if line[1] == int64(d) {
						logged += uint64(count)
						if count > 0 && k > fiolog.Bucket(dir.Service.Max()) {
							t.Errorf("clone %d: something in bucket %d, above the largest latency %d", i, k, dir.Service.Max())
						}
					}
				}
			}
			if logged != dir.Operations {
				t.Errorf("clone %d direction %d: histograms hold %d operations of %d", i, d, logged, dir.Operations)
			}
		}
		lines := logLines(t, path("iops"))
		if end := lines[len(lines)-1][0]; end < 1120 || end > row.Runtime.Milliseconds()+1 {
			t.Errorf("clone %d: the last window ends at %d ms, the load after %s", i, end, row.Runtime)
		}
		for _, kind := range []string{"lat", "clat", "slat"} {
			if kind != "slat" && len(logLines(t, path(kind))) < 10 {
				t.Errorf("clone %d: %s has %d lines", i, kind, len(logLines(t, path(kind))))
			}
		}
	}
}

// fio's own histogram log is what its log of latencies says when the values are put into our buckets.
func TestBucketsAreFios(t *testing.T) {
	dir := t.TempDir()
	fio(t, dir, "[j]\nfilename=file\nioengine=psync\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime=400ms\nwrite_lat_log=x\nwrite_hist_log=x\nlog_hist_msec=100\n")
	latencies := logLines(t, filepath.Join(dir, "x_clat.1.log"))
	lines := logLines(t, filepath.Join(dir, "x_clat_hist.1.log"))
	if len(lines) == 0 {
		t.Fatal("fio wrote no histogram")
	}
	for _, line := range lines {
		want := make([]int64, fiolog.BucketCount)
		total := int64(0)
		for _, n := range line[3:] {
			total += n
		}
		if len(line) != 3+fiolog.BucketCount || total > int64(len(latencies)) {
			t.Fatalf("fio has %d columns with %d operations, its log %d", len(line), total, len(latencies))
		}
		for _, l := range latencies[:total] {
			want[fiolog.Bucket(uint64(l[1]))]++
		}
		latencies = latencies[total:]
		if !slices.Equal(want, line[3:]) {
			t.Fatalf("fio's buckets at %d ms are others than ours", line[0])
		}
	}
}

// A full file system ends the log with one clear error; the report is whole.
func TestFullDiskOfLogs(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/dev/full", filepath.Join(dir, "x_iops.1.log")); err != nil {
		t.Fatal(err)
	}
	_, file := parse(t, dir, "[j]\nioengine=null\nsize=40m\nbs=4k\nrw=randread\nwrite_iops_log=x\nwrite_bw_log=x\n")
	var said []string
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: dir, Say: func(text string) { said = append(said, text) }})
	if err != nil {
		t.Fatal(err)
	}
	if got := report.Rows[0].Directions[interval.Read].Operations; got != 10240 || report.Rows[0].Err != nil {
		t.Errorf("%d operations, %v", got, report.Rows[0].Err)
	}
	if !strings.Contains(report.LogFault, "x_iops.1.log") || !strings.Contains(report.LogFault, "no space") {
		t.Errorf("the error is %v", report.LogFault)
	}
	if len(said) != 1 || !strings.Contains(said[0], "no space") {
		t.Errorf("said %q", said)
	}
	if n := len(logLines(t, filepath.Join(dir, "x_bw.1.log"))); n != 10240 {
		t.Errorf("the other log has %d lines", n)
	}
}

// Logs that cannot be made stop everything before the first file is laid out.
func TestLogsWithoutFolder(t *testing.T) {
	dir := t.TempDir()
	_, file := parse(t, dir, "[j]\nfilename=@/file\nsize=1m\nwrite_bw_log=none/x\n")
	if _, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: dir}); err == nil || !strings.Contains(err.Error(), "no such directory") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "file")); err == nil {
		t.Error("a file was made")
	}
}

// slat_ns is filled where requested, and only for engines that queue.
func TestSubmissionLatencyInReports(t *testing.T) {
	for options, want := range map[string]bool{
		"ioengine=io_uring\niodepth=4\nwrite_lat_log=x\n": true, "ioengine=io_uring\niodepth=4\nslat_percentiles=1\n": true,
		"ioengine=io_uring\niodepth=4\n": false, "ioengine=psync\nwrite_lat_log=x\n": false,
		"ioengine=io_uring\niodepth=4\nwrite_lat_log=x\ndisable_slat=1\n": false,
	} {
		report := runIn(t, t.TempDir(), "[j]\nfilename=@/file\nsize=256k\nrw=randread\n"+options)
		row := &report.Rows[0]
		n, total := row.Account.Submissions[interval.Read].Count(), row.Directions[interval.Read].Operations
		if strings.Contains(row.Engine, "io_uring refused") && want {
			testreq.Skip(t, "needs io_uring: "+row.Engine)
		}
		if want && n != total || !want && n != 0 {
			t.Errorf("%q: slat of %d operations of %d", options, n, total)
		}
	}
}

// A load that is stopped has a line for every operation of its report, and its last window.
func TestStoppedLoadsHaveWholeLogs(t *testing.T) {
	for _, average := range []string{"0", "100"} {
		dir := t.TempDir()
		_, file := parse(t, dir, "[j]\nioengine=null\nsize=1m\nbs=4k\nrw=randread\nrate_iops=5000\ntime_based\nruntime=1h\nwrite_iops_log=x\nwrite_hist_log=x\nlog_hist_msec=100\nlog_avg_msec="+average+"\n")
		ctx, cancel := context.WithTimeout(t.Context(), 450*time.Millisecond)
		report, err := iojob.Run(ctx, file.Jobs(), iojob.Options{Folder: dir})
		cancel()
		if err != nil || report.LogFault != "" {
			t.Fatal(err, report.LogFault)
		}
		total, logged, inHistograms := int64(report.Rows[0].Directions[interval.Read].Operations), 0.0, int64(0)
		last := int64(0)
		for _, line := range logLines(t, filepath.Join(dir, "x_iops.1.log")) {
			if average == "0" {
				logged += float64(line[1])
				continue
			}
			logged += float64(line[1]) * float64(line[0]-last) / 1000
			last = line[0]
		}
		for _, line := range logLines(t, filepath.Join(dir, "x_clat_hist.1.log")) {
			for _, n := range line[3:] {
				inHistograms += n
			}
		}
		if total == 0 || math.Abs(logged-float64(total)) > 0.01*float64(total) || average == "0" && int64(logged) != total || inHistograms != total {
			t.Errorf("log_avg_msec=%s: %d operations, the log has %v, histograms %d", average, total, logged, inHistograms)
		}
	}
}
