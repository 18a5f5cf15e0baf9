package iojob_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/testreq"
)

type streamedLatency struct {
	Mean                         float64
	Min, P50, P90, P95, P99, Max uint64
	P999                         uint64 `json:"p99.9"`
}

type streamedDirection struct {
	Ops, Bytes uint64
	IOPS       float64
	BW         float64 `json:"bw_bytes"`
	Errors     map[string]uint64
	Service    *streamedLatency `json:"service_ns"`
	Response   *streamedLatency `json:"response_ns"`
}

type streamedLine struct {
	Job       string
	Clone     int
	Clones    int
	Group     int   `json:"groupid"`
	Start     int64 `json:"start_ns"`
	End       int64 `json:"end_ns"`
	Unix      int64 `json:"unix_ns"`
	Read      *streamedDirection
	Write     *streamedDirection
	Trim      *streamedDirection
	Due       uint64
	NotIssued uint64 `json:"not_issued"`
	Backlog   uint64
	InFlight  uint64 `json:"in_flight"`
	Stalled   int64  `json:"stalled_ns"`
	CPU       int64  `json:"cpu_ns"`
	Final     bool
}

// streamOf runs jobs and returns the lines of their intervals.
func streamOf(t *testing.T, text string, o iojob.Options) (*fioreport.Report, []streamedLine) {
	t.Helper()
	dir := t.TempDir()
	_, file := parse(t, dir, text)
	var out bytes.Buffer
	o.Folder, o.Intervals = dir, &out
	report, err := iojob.Run(t.Context(), file.Jobs(), o)
	if err != nil || report.LogFault != "" {
		t.Fatal(err, report.LogFault)
	}
	var all []streamedLine
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	for d.More() {
		var line streamedLine
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return report, all
}

// Intervals of a row follow each other and add up to its report, whether it is one clone or several.
func TestIntervalsAddUp(t *testing.T) {
	report, lines := streamOf(t, `[global]
ioengine=null
size=1m
time_based
[group]
numjobs=3
group_reporting
runtime=1150ms
rw=randrw
rate_iops=2000,1000
[late]
new_group
startdelay=300ms
runtime=400ms
rw=randread
[next]
stonewall
runtime=300ms
rw=write
`, iojob.Options{Sample: 50 * time.Millisecond, IntervalLength: 200 * time.Millisecond})
	if len(report.Rows) != 3 {
		t.Fatalf("%d rows", len(report.Rows))
	}
	for i := range report.Rows {
		row := &report.Rows[i]
		var operations, bytes [interval.DirectionCount]uint64
		var due uint64
		last, finals := int64(-1), 0
		for _, l := range lines {
			if l.Job != row.Name {
				continue
			}
			if last >= 0 && l.Start != last || l.End <= l.Start || finals > 0 {
				t.Errorf("%s: interval from %d to %d behind %d", l.Job, l.Start, l.End, last)
			}
			last = l.End
			if length := time.Duration(l.End - l.Start); length > 400*time.Millisecond {
				t.Errorf("%s: an interval of %s", l.Job, length)
			}
			if l.Clones != row.Clones || l.Clone != row.Number+1 || l.Group != row.Group || l.Unix != report.Started.UnixNano()+l.End {
				t.Errorf("%s: wrong head %+v", l.Job, l)
			}
			if l.Final {
				finals++
			}
			due += l.Due
			for d, dir := range []*streamedDirection{l.Read, l.Write, l.Trim} {
				if dir == nil {
					continue
				}
				operations[d] += dir.Ops
				bytes[d] += dir.Bytes
				if want := float64(dir.Ops) * 1e9 / float64(l.End-l.Start); math.Abs(dir.IOPS-want) > 1e-3*(1+want) {
					t.Errorf("%s: %v operations a second, want %v", l.Job, dir.IOPS, want)
				}
				if (dir.Ops == 0) != (dir.Service == nil) || (dir.Ops == 0) != (dir.Response == nil) {
					t.Errorf("%s: latencies of %d operations: %v, %v", l.Job, dir.Ops, dir.Service, dir.Response)
				}
				if s := dir.Response; s != nil && (s.Min > s.P50 || s.P50 > s.P90 || s.P90 > s.P95 || s.P95 > s.P99 || s.P99 > s.P999 || s.P999 > s.Max) {
					t.Errorf("%s: percentiles %+v", l.Job, *s)
				}
			}
		}
		for d := range operations {
			if operations[d] != row.Directions[d].Operations || bytes[d] != row.Directions[d].Bytes {
				t.Errorf("%s direction %d: %d operations in intervals, %d in the report", row.Name, d, operations[d], row.Directions[d].Operations)
			}
		}
		if due != row.Due || finals != 1 {
			t.Errorf("%s: %d due in intervals, %d in the report; %d last lines", row.Name, due, row.Due, finals)
		}
	}
}

// The backlog of a rate that is out of reach is a series of its own.
func TestBacklogIsASeries(t *testing.T) {
	_, lines := streamOf(t, "[j]\nioengine=psync\nfilename=@/file\nsize=1m\nrw=randread\nthinktime=10000\nrate_iops=1000\ntime_based\nruntime=600ms\n",
		iojob.Options{Sample: 100 * time.Millisecond, IntervalLength: 100 * time.Millisecond})
	var highest uint64
	for i, l := range lines {
		if i > 0 && !l.Final && l.Backlog < lines[i-1].Backlog {
			t.Errorf("the backlog falls from %d to %d", lines[i-1].Backlog, l.Backlog)
		}
		highest = max(highest, l.Backlog)
	}
	if last := lines[len(lines)-1]; highest < 200 || last.NotIssued < 200 {
		t.Errorf("a backlog of %d at most, %d never issued", highest, last.NotIssued)
	}
}

// Lines come while the load runs, and a reader that is gone does not hold it.
func TestIntervalsComeWhileTheLoadRuns(t *testing.T) {
	dir := t.TempDir()
	_, file := parse(t, dir, "[j]\nioengine=null\nsize=1m\ntime_based\nruntime=1h\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reader, writer := io.Pipe()
	go func() {
		lines := bufio.NewScanner(reader)
		for lines.Scan() && !strings.Contains(lines.Text(), "service_ns") {
			continue // nothing was done yet
		}
		_ = reader.CloseWithError(errors.New("the reader is gone"))
		cancel() // the load would go on for an hour
	}()
	report, err := iojob.Run(ctx, file.Jobs(), iojob.Options{
		Folder: dir, Intervals: writer, Sample: 20 * time.Millisecond, IntervalLength: 20 * time.Millisecond,
	})
	if err != nil || report.Rows[0].Directions[0].Operations == 0 || !strings.Contains(report.LogFault, "the reader is gone") {
		t.Errorf("%v, %q", err, report.LogFault)
	}
}

func TestIntervalsOnAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		testreq.Skip(t, err.Error())
	}
	defer full.Close()
	_, file := parse(t, t.TempDir(), "[j]\nioengine=null\nsize=1m\n")
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Intervals: full})
	if err != nil || report.Rows[0].Err != nil || !strings.Contains(report.LogFault, "no space") {
		t.Errorf("%v, %v, %q", err, report.Rows[0].Err, report.LogFault)
	}
}

// The final live figures equal the report.
func TestLiveIsTheReport(t *testing.T) {
	dir := t.TempDir()
	_, file := parse(t, dir, "[j]\nioengine=psync\nnumjobs=2\nsize=1m\nrw=randrw\nrate_iops=2000,2000\n")
	var now func() []iojob.Live
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: dir, Live: func(f func() []iojob.Live) { now = f }})
	if err != nil {
		t.Fatal(err)
	}
	all := now()
	if len(all) != 2 {
		t.Fatalf("%d clones", len(all))
	}
	for i, l := range all {
		row := &report.Rows[i]
		var devices, operations uint64
		for d := range l.Traffic {
			if l.Traffic[d].Operations != row.Directions[d].Operations || l.Traffic[d].Operations > 0 && l.Traffic[d].Response.Count() != l.Traffic[d].Operations {
				t.Errorf("clone %d: %d operations, the report has %d", i, l.Traffic[d].Operations, row.Directions[d].Operations)
			}
			operations += l.Traffic[d].Operations
			devices += l.Devices[filepath.Join(dir, "j."+string(rune('0'+i))+".0")][d].Operations
		}
		if devices != operations || !l.OpenLoop || l.Due != row.Due || l.CPUNanos <= 0 || l.Clone != i+1 {
			t.Errorf("clone %d: %+v", i, l)
		}
	}
}

// What a replay does is in its intervals, whatever rw says.
func TestIntervalsOfAReplay(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "w.log"), []byte("fio version 3 iolog\n0 f add\n0 f open\n1 f write 0 4096\n2 f read 0 4096\n3 f close\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	report, err := replay(t, dir, "[j]\nread_iolog=w.log\nioengine=psync\n", iojob.Options{Intervals: &out})
	if err != nil {
		t.Fatal(err)
	}
	var reads, writes uint64
	for d := json.NewDecoder(&out); d.More(); {
		var line streamedLine
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.Read != nil {
			reads += line.Read.Ops
		}
		if line.Write != nil {
			writes += line.Write.Ops
		}
	}
	row := &report.Rows[0]
	if reads != row.Directions[interval.Read].Operations || writes != row.Directions[interval.Write].Operations || writes == 0 {
		t.Errorf("%d reads and %d writes in intervals; the report has %d and %d", reads, writes,
			row.Directions[interval.Read].Operations, row.Directions[interval.Write].Operations)
	}
}
