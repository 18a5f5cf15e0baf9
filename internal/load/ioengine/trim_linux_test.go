package ioengine_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/testreq"
)

const trimmedBytes = 4 * mib

// writtenFile is a file without holes.
func writtenFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, bytes.Repeat([]byte{0x5a}, trimmedBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(path, unix.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Fsync(fd); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	return path
}

func allocatedBytes(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// runOn does a job on one device and returns its traffic.
func runOn(t *testing.T, path, backend, options string) (sum [interval.DirectionCount]interval.Traffic) {
	t.Helper()
	w := job(options)
	w.Devices, w.Generator = []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: trimmedBytes, Consent: own(trimmedBytes)}}, "native"
	err := loadtest.Drive(t.Context(), ioengine.Generator{Backend: backend}, w, load.SinkFunc(func(iv interval.Interval) {
		for d := range sum {
			sum[d].Add(&iv.Directions[d])
		}
	}))
	if err != nil {
		t.Fatalf("%s %s: %v", backend, options, err)
	}
	return sum
}

// Trims give every block back, of files and of devices, whatever does them; trimwrite leaves new data everywhere.
func TestTrimsReachTheMedium(t *testing.T) {
	for _, backend := range []string{"io_uring", "psync"} {
		for _, onDevice := range []bool{false, true} {
			for _, rw := range []string{"trim", "randtrim", "trimwrite", "randtrimwrite"} {
				t.Run(fmt.Sprintf("%s/device=%v/%s", backend, onDevice, rw), func(t *testing.T) {
					file := writtenFile(t)
					path := file
					if onDevice {
						path = testreq.Loop(t, file, "--direct-io=off")
					}
					sum := runOn(t, path, backend, "ioengine=libaio bs=64k iodepth=8 end_fsync=1 rw="+rw)
					if n := sum[interval.Trim].Operations; n != trimmedBytes/65536 || sum[interval.Trim].Bytes != trimmedBytes {
						t.Errorf("%d trims, %d bytes", n, sum[interval.Trim].Bytes)
					}
					if sum[interval.Trim].Service.Count() != sum[interval.Trim].Operations {
						t.Errorf("%d latencies of trims", sum[interval.Trim].Service.Count())
					}
					data, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					if !strings.HasSuffix(rw, "write") {
						if n := allocatedBytes(t, file); n != 0 || !bytes.Equal(data, make([]byte, trimmedBytes)) {
							t.Errorf("%d bytes of %d are still allocated", n, trimmedBytes)
						}
						return
					}
					if sum[interval.Write].Operations != sum[interval.Trim].Operations {
						t.Errorf("%d writes behind %d trims", sum[interval.Write].Operations, sum[interval.Trim].Operations)
					}
					for at := 0; at < len(data); at += 65536 {
						block := data[at : at+65536]
						if bytes.Count(block, []byte{0}) > 1024 || bytes.Count(block, []byte{0x5a}) > 1024 {
							t.Fatalf("the block at %d was not written again", at)
						}
					}
				})
			}
		}
	}
}
