//go:build linux

package ioengine_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine"
)

// Trims of what was written are part of what verification makes again: whatever overwrites what, what is left of the writes is
// as it was written, and what is left of the trims is zeroes.
func TestWhatIsTrimmedVerifies(t *testing.T) {
	defer ioengine.SetWindowUnits(20)() // several windows
	trims := []string{"trim_percentage=100 trim_backlog=16", "trim_percentage=30 trim_backlog=8 trim_backlog_batch=3", "trim_percentage=60 trim_backlog=1"}
	for i, c := range verifyJobs {
		for k, engine := range []string{"ioengine=psync", "ioengine=libaio iodepth=8", "ioengine=io_uring iodepth=16"} {
			method := verifyMethods[(i+k)%len(verifyMethods)]
			options := strings.Join([]string{c.options, engine, method, trims[(i+k)%len(trims)], "trim_verify_zero=1"}, " ")
			w := files(t, job(options))
			wrong, sum := mismatches(t, w)
			trimmed, written := sum.Directions[interval.Trim].Operations, sum.Directions[interval.Write].Operations
			if wrong != 0 {
				t.Errorf("%s: %d operations found something else than what was written", options, wrong)
			}
			if trimmed == 0 || trimmed > written || sum.Directions[interval.Read].Operations == 0 {
				t.Errorf("%s: %d trims of %d writes, %d reads", options, trimmed, written, sum.Directions[interval.Read].Operations)
			}
			if n := sum.Directions[interval.Trim].Service.Count(); n != trimmed {
				t.Errorf("%s: %d latencies of %d trims", options, n, trimmed)
			}
		}
	}
}

// The share of the writes is trimmed that the job asks for, and those blocks are holes.
func TestShareOfTrims(t *testing.T) {
	w := files(t, job("rw=randwrite bs=4k size=8m ioengine=libaio iodepth=8 verify=crc32c trim_percentage=25 trim_backlog=64 do_verify=0 end_fsync=1"))
	_, sum := mismatches(t, w)
	trimmed := sum.Directions[interval.Trim].Operations
	if trimmed < 400 || trimmed > 624 { // 512 of 2048; five standard deviations
		t.Errorf("%d of 2048 writes were trimmed, want about 512", trimmed)
	}
	data, err := os.ReadFile(w.Devices[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	zeroes := uint64(0)
	for at := 0; at < 8<<20; at += 4096 {
		if bytes.Equal(data[at:at+4096], make([]byte, 4096)) {
			zeroes++
		}
	}
	if zeroes != trimmed {
		t.Errorf("%d blocks are zeroes after %d trims", zeroes, trimmed)
	}
}

// Data in place of zeroes is found, where the job requests it, and what a trim destroyed besides is found always.
func TestTrimsThatWentWrongAreFound(t *testing.T) {
	const options = "rw=randwrite bs=4k size=1m ioengine=libaio iodepth=8 verify=crc32c trim_percentage=50 trim_backlog=16"
	w := files(t, job(options))
	mismatches(t, w)
	path := w.Devices[0].Path
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hole, whole := -1, -1
	for at := 0; at < 1<<20; at += 4096 {
		if data[at] == 0 && data[at+1] == 0 {
			hole = at
		} else {
			whole = at
		}
	}
	for _, c := range []struct {
		at     int
		zeroes string
		wrong  uint64
	}{{hole, "1", 1}, {hole, "0", 0}, {whole, "1", 1}, {whole, "0", 1}} {
		damaged := bytes.Clone(data)
		damaged[c.at+100] ^= 8
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		only := w
		only.Config = job(options + " verify_only trim_verify_zero=" + c.zeroes).Config
		if wrong, sum := mismatches(t, only); wrong != c.wrong || sum.Directions[interval.Trim].Operations != 0 {
			t.Errorf("a bit at %d (trimmed: %v), trim_verify_zero=%s: %d found, want %d; %d trims", c.at, c.at == hole, c.zeroes, wrong, c.wrong,
				sum.Directions[interval.Trim].Operations)
		}
	}
}
