package loadtest

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/testreq"
)

// fileSystemBytes is the size of disks with a file system: mkfs.xfs makes none of less than 300 MB.
const fileSystemBytes = 512 << 20

// OnDevices puts the first disk of a workload on a loop device, which the user consents to, and this process in a folder of its own, as an
// agent has one.
func OnDevices(t *testing.T, w load.Workload) load.Workload {
	t.Helper()
	testreq.Root(t)
	t.Chdir(t.TempDir())
	dir, err := filepath.EvalSymlinks(t.TempDir()) // as the kernel names a backing file
	if err != nil {
		t.Fatal(err)
	}
	backing := filepath.Join(dir, "backing")
	if err := errors.Join(os.WriteFile(backing, nil, 0o600), os.Truncate(backing, fileSystemBytes)); err != nil {
		t.Fatal(err)
	}
	w.Devices = []load.Device{{Name: w.Devices[0].Name, Path: testreq.Loop(t, backing), SizeBytes: fileSystemBytes,
		Consent: load.Consent{SizeBytes: fileSystemBytes, Link: backing}}}
	return w
}

// RunFileSystems tests a generator that keeps files on a disk which is a block device: a prefill makes a file system, loads mount that one
// where no other program sees it, and release the device whatever ends them. load is one of a short time.
func RunFileSystems(t *testing.T, g load.Generator, workload func(testing.TB) load.Workload) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			testreq.Program(t, "mkfs."+kind)
			w := OnDevices(t, workload(t))
			w.Options = maps.Clone(w.Options)
			if w.Options == nil {
				w.Options = map[string]string{}
			}
			w.Options["file_system"] = kind
			disk := w.Devices[0]
			var known *diag.Error
			if _, err := g.Prepare(t.Context(), w); !errors.As(err, &known) || known.Code != "no-file-system" {
				t.Fatalf("a load without a prefill: %v", err)
			}
			filled := w
			filled.Prefill, filled.Runtime = true, 0
			if err := Drive(t.Context(), g, filled, &Log{}); err != nil {
				t.Fatal(err)
			}
			Released(t, disk, kind)
			for range 2 {
				onFileSystem(t, g, w, kind)
				Released(t, disk, kind)
			}
			in, err := g.Prepare(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), w.Runtime/4)
			defer cancel()
			if err := in.Run(ctx, &Log{}); err != nil {
				t.Errorf("a load that is stopped: %v", err)
			}
			Released(t, disk, kind)
		})
	}
}

// onFileSystem runs a load, and checks what it does with the device.
func onFileSystem(t *testing.T, g load.Generator, w load.Workload, kind string) {
	t.Helper()
	disk := w.Devices[0]
	in, err := g.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if text := in.(load.Describer).Engine().String(); !strings.Contains(text, disk.Name+": "+kind+" (noatime)") {
		t.Errorf("the engine does not state the file system: %s", text)
	}
	if f, _, err := blockdev.Open(disk.Path, load.Consent{Own: true, SizeBytes: disk.SizeBytes}, os.O_RDWR); err == nil {
		_ = f.Close()
		t.Error("the device is not in use")
	}
	if mounts, _ := os.ReadFile("/proc/self/mounts"); strings.Contains(string(mounts), disk.Path+" ") {
		t.Error("other programs see the mount")
	}
	before := sectors(t, disk.Path)
	var log Log
	if err := in.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	sum := Add(log.Intervals())
	if sum.Directions[0].Operations+sum.Directions[1].Operations == 0 {
		t.Errorf("no operations: %+v", sum)
	}
	if sectors(t, disk.Path) == before {
		t.Error("the load did not reach the device")
	}
}

// sectors is what /proc/diskstats counts as read and written of a device.
func sectors(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/diskstats")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 9 && f[2] == filepath.Base(path) {
			return f[5] + " " + f[9]
		}
	}
	t.Fatalf("%s is not in /proc/diskstats", path)
	return ""
}

// Released wants a device without users in any mount namespace, and with a file system of that type.
func Released(t *testing.T, d load.Device, kind string) {
	t.Helper()
	consent := d.Consent
	consent.Overwrite = []string{kind}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // the kernel unmounts after the death of a process
		f, state, err := blockdev.Open(d.Path, consent, os.O_RDWR)
		if err == nil {
			_ = f.Close()
			if names := state.SignatureNames(); len(names) != 1 || names[0] != kind {
				t.Errorf("%s has %q, want %s", d.Path, names, kind)
			}
			return
		}
		if time.Since(began) > 30*time.Second {
			t.Fatal(err)
		}
	}
}
