//go:build linux

package vioperf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

func workload(t testing.TB) load.Workload {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sdb")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return load.Workload{Name: "contract", Group: "group", VM: "group-0001", Instance: 3, Generator: Name, Seed: 42,
		Devices: []load.Device{{Name: "/dev/sdb", Path: path, SizeBytes: 1 << 30}},
		Options: map[string]string{"threads": "2", "buffer": "64KiB", "data": "8MiB"}}
}

func TestContract(t *testing.T) {
	loadtest.RunAny(t, loadtest.Subject{Generator: Generator{}, Endless: workload, Untouched: func(t testing.TB, w load.Workload) {
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(w.Devices[0].Path), "*", "*", "data"))
		if len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}})
}

func TestSimulation(t *testing.T) {
	loadtest.RunAny(t, loadtest.Subject{Generator: Simulation, Endless: workload})
}

// Each test counts its own buffers, the table has the results, and the files are gone afterwards.
func TestTests(t *testing.T) {
	for _, crc := range []string{"on", "off"} {
		w := workload(t)
		w.Runtime, w.Options["crc"] = 400*time.Millisecond, crc
		in, err := Generator{}.Prepare(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		engine := in.(load.Describer).Engine().String()
		var log loadtest.Log
		if err := in.Run(t.Context(), &log); err != nil {
			t.Fatal(err)
		}
		all := log.Intervals()
		sum := loadtest.Add(all)
		for kind, name := range testNames {
			each := uint64(64 << 10)
			if kind == rewrite {
				each *= 2
			}
			if d := sum.Directions[kind]; d.Operations == 0 || d.Bytes != d.Operations*each || d.ErrorCount() != 0 {
				t.Errorf("%s: %d operations, %d bytes, errors %v", name, d.Operations, d.Bytes, d.Errors)
			}
		}
		last := all[len(all)-1].Gauges
		if (last[gaugeCRC] > 0) != (crc == "on") || !(last[write] > 0) || !strings.Contains(engine, "CRC "+crc) {
			t.Errorf("CRC %s: %v, engine %s", crc, last, engine)
		}
		text := in.(load.Teller).Outputs()[0].Text
		for _, part := range []string{"Write | /dev/sdb | MB/s", "ReWrite | ", "+", "Read | ", "SkipRead | /dev/sdb | seeks/s"} {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in\n%s", part, text)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(w.Devices[0].Path), "*", "*", "*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func testWorker(t *testing.T, crc bool) *worker {
	t.Helper()
	var files [2]*os.File
	for i, name := range []string{"a", "b"} {
		f, _, err := open(filepath.Join(t.TempDir(), name), false)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = f
	}
	w, err := newWorker(&config{buffer: 8 << 10, crc: crc}, files, 10*(8<<10), 7)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.close() })
	return w
}

// Files grow to their limit, and then another one grows again from no length: at least half of the data remains.
func TestGrow(t *testing.T) {
	w := testWorker(t, true)
	for n := range 45 {
		if _, err := w.append(); err != nil {
			t.Fatal(err)
		}
		for i := range w.files {
			info, err := w.files[i].Stat()
			if err != nil || info.Size() != w.sizes[i] || info.Size() > w.limit {
				t.Fatalf("after %d writes file %d has %d bytes, want %d", n, i, info.Size(), w.sizes[i])
			}
		}
		if n >= 10 && w.sizes[0]+w.sizes[1] < w.limit {
			t.Errorf("after %d writes %d bytes remain", n, w.sizes[0]+w.sizes[1])
		}
	}
	blocks := (w.sizes[0] + w.sizes[1]) / (8 << 10)
	seen := map[int64]bool{}
	for n := range 2 * blocks {
		if _, err := w.read(n); err != nil {
			t.Errorf("block %d: %v", n, err)
		}
		b := w.skip(n)
		if next := w.skip(n + 1); next == b+1 {
			t.Errorf("skip read %d is contiguous", n)
		}
		seen[b%blocks] = true
	}
	if int64(len(seen)) < blocks {
		t.Errorf("skip reads reach %d of %d blocks", len(seen), blocks)
	}
}

// A single changed byte is an error with checksums, and not seen without, as in the original.
func TestCorrupt(t *testing.T) {
	for _, crc := range []bool{true, false} {
		w := testWorker(t, crc)
		if _, err := w.append(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.files[0].WriteAt([]byte{w.buffer[5000] + 1}, 5000); err != nil {
			t.Fatal(err)
		}
		_, err := w.read(0)
		if found := err != nil && class(err) == "crc"; found != crc {
			t.Errorf("checksums %t: %v", crc, err)
		}
		_ = w.files[0].Truncate(100)
		if _, err := w.read(0); class(err) != "short-read" {
			t.Errorf("truncated file: %v", err)
		}
	}
}

func TestOptions(t *testing.T) {
	for option, value := range map[string]string{"buffer": "1KiB", "crc": "maybe", "direct": "no", "disk": "/dev/sdz", "duration": "1ms", "threads": "0", "data": "1KiB", "bs": "4k"} {
		w := workload(t)
		w.Options = map[string]string{option: value}
		if _, err := (Generator{}).Plan(w); err == nil || !strings.Contains(err.Error(), option) {
			t.Errorf("%s=%s: %v", option, value, err)
		}
	}
	w := workload(t)
	w.Options = map[string]string{"threads": "1024"}
	if _, err := (Generator{}).Plan(w); err == nil || !strings.Contains(err.Error(), "need 32 GiB at least, and disk /dev/sdb has 1 GiB") {
		t.Errorf("more threads than the disk has space for: %v", err)
	}
	w = workload(t)
	w.Devices[0].Path = "/dev/null"
	var user *diag.Error
	if _, err := (Generator{}).Prepare(t.Context(), w); !errors.As(err, &user) || user.Code != "disk-without-files" {
		t.Errorf("device: %v", err)
	}
	w.Devices = nil
	if _, err := (Generator{}).Plan(w); err == nil {
		t.Error("a group without disks was accepted")
	}
}

func TestFileSystems(t *testing.T) {
	loadtest.RunFileSystems(t, Generator{}, func(t testing.TB) load.Workload {
		w := workload(t)
		w.Runtime = 800 * time.Millisecond
		return w
	})
}

// No two loads of a run write the same blocks: a store that finds equal ones would gain by them.
func TestContentsDiffer(t *testing.T) {
	keys := map[uint64]bool{}
	loads := 0
	for _, change := range []func(*load.Workload){func(*load.Workload) {}, func(w *load.Workload) { w.Number++ }, func(w *load.Workload) { w.Ordinal++ },
		func(w *load.Workload) { w.Instance++ }} {
		w := workload(t)
		change(&w)
		prepared, err := Generator{}.Prepare(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range prepared.(*instance).workers {
			keys[k.key] = true
			loads++
		}
		if err := prepared.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(keys) != loads {
		t.Errorf("%d keys of %d threads", len(keys), loads)
	}
}
