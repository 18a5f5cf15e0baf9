package ioengine_test

import (
	"bytes"
	"compress/flate"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// files puts empty files behind the devices of w.
func files(t testing.TB, w load.Workload) load.Workload {
	t.Helper()
	dir := t.TempDir()
	w.Devices = append([]load.Device(nil), w.Devices...)
	for i := range w.Devices {
		w.Devices[i].Path = filepath.Join(dir, filepath.Base(w.Devices[i].Name))
		if err := os.WriteFile(w.Devices[i].Path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(w.Devices[i].Path, w.Devices[i].SizeBytes); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// run runs w and returns what its intervals add up to.
// prepared is the run of a workload that has only fio jobs.
func prepared(t testing.TB, w load.Workload) ioengine.Run {
	t.Helper()
	file, list := fiojob.Parse(w.ConfigName, w.Config, fiojob.Options{})
	if list.HasErrors() {
		t.Fatal(list.Err())
	}
	run, err := ioengine.New().PrepareJobs(t.Context(), w, file.Jobs())
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func run(t testing.TB, g ioengine.Generator, w load.Workload) loadtest.Sum {
	t.Helper()
	w.Generator = "native"
	var log loadtest.Log
	err := loadtest.Drive(t.Context(), g, w, &log)
	if err != nil {
		t.Fatal(err)
	}
	loadtest.CheckIntervals(t, w, log.Intervals())
	return loadtest.Add(log.Intervals())
}

func content(t testing.TB, w load.Workload) []byte {
	t.Helper()
	all, err := os.ReadFile(w.Devices[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What is written by default cannot be compressed in windows from 4 KiB to 1 MiB, and no two blocks are equal, in
// whatever order and size it was written.
func TestContentIsIncompressible(t *testing.T) {
	t.Parallel()
	for _, options := range []string{
		"rw=write bs=4k iodepth=1", "rw=randwrite bs=4k iodepth=32", "rw=write bs=1m iodepth=8", "rw=randwrite bsrange=4k-64k iodepth=16",
	} {
		w := files(t, job(options+" size=4m ioengine=libaio direct=1"))
		run(t, ioengine.New(), w)
		all := content(t, w)[:4*mib]
		seen := map[string]int{}
		for at := 0; at < len(all); at += 512 {
			sector := string(all[at : at+512])
			if first, ok := seen[sector]; ok {
				t.Fatalf("%s: the sectors at %d and %d are equal", options, first, at)
			}
			seen[sector] = at
		}
		for _, window := range []int{4 << 10, 32 << 10, 1 << 20} {
			for at := 0; at < len(all); at += 2 * mib {
				checkIncompressible(t, fmt.Sprintf("%s at %d", options, at), all[at:at+window])
			}
		}
	}
}

func checkIncompressible(t *testing.T, what string, data []byte) {
	t.Helper()
	var out bytes.Buffer
	deflate, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := deflate.Write(data); err != nil {
		t.Fatal(err)
	}
	deflate.Close()
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	if smallest := min(out.Len(), len(encoder.EncodeAll(data, nil))); float64(smallest) < 0.999*float64(len(data)) {
		t.Errorf("%s: %d bytes compress to %d", what, len(data), smallest)
	}
}

// Content depends on seed, stream and the number of the write, not on queue depth or back end.
func TestContentIsDeterministic(t *testing.T) {
	t.Parallel()
	write := func(options string, g ioengine.Generator, change func(*load.Workload)) []byte {
		w := files(t, job("rw=randwrite bssplit=4k/50:16k/50 size=4m direct=1 "+options))
		if change != nil {
			change(&w)
		}
		run(t, g, w)
		return content(t, w)[:4*mib]
	}
	first := write("ioengine=psync", ioengine.New(), nil)
	if !bytes.Equal(first, write("ioengine=libaio iodepth=32", ioengine.New(), nil)) {
		t.Error("queue depth or back end change what is written")
	}
	if !bytes.Equal(first, write("ioengine=libaio iodepth=32", ioengine.Generator{Backend: "psync"}, nil)) {
		t.Error("psync with threads writes something else")
	}
	other := write("ioengine=psync", ioengine.New(), func(w *load.Workload) { w.Ordinal = 1 })
	for at := 0; at < len(first); at += 512 {
		if bytes.Equal(first[at:at+512], other[at:at+512]) {
			t.Fatalf("two VMs wrote the same sector at %d", at)
		}
	}
}

func TestZeroBuffers(t *testing.T) {
	t.Parallel()
	w := files(t, job("rw=write bs=64k size=1m zero_buffers=1"))
	if err := os.WriteFile(w.Devices[0].Path, bytes.Repeat([]byte{1}, 64*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, ioengine.New(), w)
	all := content(t, w)
	if !bytes.Equal(all[:mib], make([]byte, mib)) || all[mib] != 1 {
		t.Error("zero_buffers did not write zeros, or wrote too many")
	}
}
