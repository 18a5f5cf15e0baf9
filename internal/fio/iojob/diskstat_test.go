//go:build linux

package iojob_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/testreq"
)

// deviceCounters are those that iostat reads: /sys/block/NAME/stat, see Documentation/block/stat.rst.
type deviceCounters struct{ ios, merges, sectors [2]float64 }

func countersOf(t *testing.T, device string) (c deviceCounters) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	for d := range 2 {
		for i, into := range []*[2]float64{&c.ios, &c.merges, &c.sectors} {
			if into[d], err = strconv.ParseFloat(fields[4*d+i], 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// requestBytesMax is what no kernel cuts into several requests, whatever pages a buffer consists of. Of larger blocks only the
// bytes can agree.
const requestBytesMax = 64 << 10

// flushes are written by opening, closing and leaving the page cache; they count as operations without bytes.
const flushes = 4

// What the report says of jobs and of the disk agrees with the kernel's own counters of the device: operations, bytes and
// merges.
func TestReportAgreesWithTheDevice(t *testing.T) {
	const size = 64 << 20
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	backing := filepath.Join(dir, "backing")
	if err := os.WriteFile(backing, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	device := testreq.Loop(t, backing)
	for _, options := range []string{
		"rw=randread bs=4k iodepth=1 io_size=16m", "rw=randread bs=4k iodepth=32 io_size=32m", "rw=randwrite bs=4k iodepth=1 io_size=16m",
		"rw=randwrite bs=4k iodepth=32 io_size=32m", "rw=read bs=1m iodepth=4 io_size=512m", "rw=write bs=1m iodepth=4 io_size=512m",
		"rw=randrw bs=4k,16k iodepth=8 io_size=32m",
	} {
		for _, engine := range []string{"io_uring", "psync"} {
			t.Run(engine+" "+options, func(t *testing.T) {
				testCounters(t, device, fmt.Sprintf("[job]\nfilename=%s\ndirect=1\nioengine=%s\n%s\n", device, engine, strings.ReplaceAll(options, " ", "\n")),
					load.Consent{Own: true, SizeBytes: size})
			})
		}
	}
}

func testCounters(t *testing.T, device, text string, consent load.Consent) {
	file, issues := fiojob.Parse("job.fio", text, fiojob.Options{})
	if err := issues.Err(); err != nil {
		t.Fatal(err)
	}
	before := countersOf(t, device)
	report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{OpenDevice: func(path string) (*os.File, error) {
		f, _, err := blockdev.Open(path, consent, os.O_RDWR)
		before = countersOf(t, device) // reads of the examination do not belong to the load
		return f, err
	}})
	if err != nil || report.Rows[0].Err != nil {
		t.Fatal(err, report.Rows[0].Err)
	}
	after := countersOf(t, device)
	var document bytes.Buffer
	if err := report.WriteJSON(&document, fioreport.Labels{Own: func(*fiojob.Job) []syntax.Option { return nil }}); err != nil {
		t.Fatal(err)
	}
	type traffic struct {
		Bytes float64 `json:"io_bytes"`
		Total float64 `json:"total_ios"`
	}
	var told struct {
		Jobs []struct{ Read, Write traffic }
		Disk []struct {
			Name        string
			Reads       float64 `json:"read_ios"`
			Writes      float64 `json:"write_ios"`
			ReadMerges  float64 `json:"read_merges"`
			WriteMerges float64 `json:"write_merges"`
		} `json:"disk_util"`
	}
	if err := json.Unmarshal(document.Bytes(), &told); err != nil {
		t.Fatal(err)
	}
	if len(told.Disk) != 1 || told.Disk[0].Name != filepath.Base(device) {
		t.Fatalf("disks %+v", told.Disk)
	}
	disk, job := told.Disk[0], told.Jobs[0]
	for d, jobs := range []traffic{job.Read, job.Write} {
		name := []string{"read", "write"}[d]
		ios, merges, bytes := after.ios[d]-before.ios[d], after.merges[d]-before.merges[d], 512*(after.sectors[d]-before.sectors[d])
		agree(t, name+" bytes of the job and the device", jobs.Bytes, bytes)
		agree(t, name+" operations of disk_util and the device", []float64{disk.Reads, disk.Writes}[d], ios)
		agree(t, name+" merges of disk_util and the device", []float64{disk.ReadMerges, disk.WriteMerges}[d], merges)
		if jobs.Total > 0 && jobs.Bytes/jobs.Total <= requestBytesMax {
			agree(t, name+" operations of the job and the device", jobs.Total, ios+merges)
		}
	}
}

// disk_util=0 takes the device of a job's files out of the report, unless another job has files there.
func TestDiskUtil(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]bool{"[a]\ndisk_util=0\n": false, "[a]\ndisk_util=1\n": true, "[a]\ndisk_util=0\n[b]\n": true} {
		_, file := parse(t, dir, "[global]\nrw=write\nsize=64k\n"+text)
		report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: dir})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := report.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		// Not every file system lies on one block device: an overlay has no counters.
		if got := len(report.Disks) > 0; got && !want || got != strings.Contains(out.String(), "Disk stats") {
			t.Errorf("%q: disks %+v and the text\n%s", text, report.Disks, &out)
		}
	}
}

// agree allows a hundredth and some flushes.
func agree(t *testing.T, what string, ours, device float64) {
	t.Helper()
	if math.Abs(ours-device) > max(flushes, 0.01*max(ours, device)) {
		t.Errorf("%s: %.0f and %.0f", what, ours, device)
	}
}

// A file below a loop device is not written to, nor made longer, before anything else happens.
func TestFileBelowALoopDeviceIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "backing")
	content := bytes.Repeat([]byte("x"), 1<<20)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	testreq.Loop(t, path)
	for _, options := range []string{"rw=write\nsize=1m", "rw=randrw\nsize=64k", "rw=read\nsize=2m"} {
		_, file := parse(t, dir, "[a]\nfilename=backing\n"+options+"\n")
		_, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: dir})
		loadtest.CheckRefusal(t, err, []string{"held"})
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
		t.Errorf("the file was changed: %v", err)
	}
	_, file := parse(t, dir, "[a]\nfilename=backing\nrw=read\nsize=1m\n")
	if report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Folder: dir}); err != nil || report.Rows[0].Err != nil {
		t.Errorf("reading: %v", err)
	}
}
