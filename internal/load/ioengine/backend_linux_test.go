package ioengine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// Every back end writes the same bytes to the same places: content depends on seed, stream and number alone.
func TestBackendsWriteTheSame(t *testing.T) {
	for _, options := range []string{
		"rw=randwrite bs=4k iodepth=8", "rw=write bssplit=4k/50:64k/50 iodepth=4 direct=1", "rw=write bs=1m offset=1m sync=sync",
		"rw=randrw bs=8k fdatasync=4 end_fsync=1",
	} {
		var first []byte
		for _, backend := range []string{"io_uring", "libaio", "psync", "pvsync2", "mmap"} {
			path := writtenFile(t)
			sum := runOn(t, path, backend, "ioengine=libaio "+options)
			if sum[interval.Write].Bytes == 0 {
				t.Errorf("%s %s: nothing was written", backend, options)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = data
			}
			if !bytes.Equal(first, data) {
				t.Errorf("%s %s: the file is another one than with io_uring", backend, options)
			}
		}
	}
}

// A mapped file that is cut while it is in use gives errors of operations and no crash.
func TestMappedFileIsCut(t *testing.T) {
	path := writtenFile(t)
	w := job("ioengine=mmap rw=randread bs=4k time_based continue_on_error=all")
	w.Devices = []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: trimmedBytes}}
	w.Generator, w.Runtime, w.IntervalLength = "native", 600*time.Millisecond, 100*time.Millisecond
	var sum interval.Traffic
	err := loadtest.Drive(t.Context(), ioengine.New(), w, load.SinkFunc(func(iv interval.Interval) {
		if iv.Sequence == 1 {
			if err := os.Truncate(path, mib); err != nil {
				t.Error(err)
			}
		}
		sum.Add(&iv.Directions[interval.Read])
	}))
	if err != nil {
		t.Fatal(err)
	}
	if sum.Failed == nil || sum.Failed.Count() != sum.Errors["short-read"] {
		t.Errorf("the times of failed operations are %v, errors %v", sum.Failed, sum.Errors)
	}
	if sum.Errors["short-read"] == 0 || sum.Operations == 0 {
		t.Errorf("%d operations, errors %v; want some of both", sum.Operations, sum.Errors)
	}
}

// What libaio refuses is reported with its limit, and nothing is left.
func TestLibaioIsRefused(t *testing.T) {
	path := writtenFile(t)
	limit, err := os.ReadFile("/proc/sys/fs/aio-max-nr")
	if err != nil {
		t.Fatal(err)
	}
	var most int
	if _, err := fmt.Sscan(string(limit), &most); err != nil || most > 1<<20 {
		t.Fatalf("aio-max-nr %q: %v", limit, err)
	}
	jobs := most/(1<<15) + 2
	w := job(fmt.Sprintf("ioengine=libaio rw=randread bs=4k iodepth=32768 direct=1 numjobs=%d norandommap", jobs))
	w.Devices = []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: trimmedBytes}}
	_, err = ioengine.Generator{Backend: "libaio"}.Prepare(t.Context(), w)
	if err == nil || !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINVAL) && !strings.Contains(err.Error(), "aio-max-nr") {
		t.Errorf("%d clones of depth 32768: %v, want an error that names aio-max-nr", jobs, err)
	}
}

// Errors of single operations are theirs and do not end the others: here EINVAL for misaligned memory or offsets cannot
// come up, so a file that is shorter than the job believes gives short reads.
func TestBackendsCountShortReads(t *testing.T) {
	for _, backend := range []string{"io_uring", "libaio", "psync", "pvsync2"} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, make([]byte, trimmedBytes), 0o600); err != nil {
			t.Fatal(err)
		}
		w := job("ioengine=libaio rw=read bs=64k iodepth=4 continue_on_error=all")
		w.Devices = []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: trimmedBytes}}
		instance, err := ioengine.Generator{Backend: backend}.Prepare(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, mib+4096); err != nil {
			t.Fatal(err)
		}
		var sum interval.Traffic
		if err := instance.Run(t.Context(), load.SinkFunc(func(iv interval.Interval) { sum.Add(&iv.Directions[interval.Read]) })); err != nil {
			t.Errorf("%s: %v", backend, err)
		}
		if sum.Operations != 16 || sum.Errors["short-read"] != 48 {
			t.Errorf("%s: %d reads, errors %v, want 16 and 48 short reads", backend, sum.Operations, sum.Errors)
		}
	}
}
