package pgbench_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/blockdev"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/pgbench"
	"github.com/braggdev/bragg/internal/testreq"
)

// onDevices returns a load with its data on one loop device and its WAL on another, which the user consents to by name and size.
func onDevices(t *testing.T, options map[string]string) load.Workload {
	t.Helper()
	needPostgreSQL(t)
	testreq.Root(t)
	t.Chdir(t.TempDir()) // the agent's folder
	w := workload(t, options)
	for i := range w.Devices {
		d := &w.Devices[i]
		if err := os.Truncate(d.Path, deviceBytes); err != nil {
			t.Fatal(err)
		}
		d.Consent = load.Consent{SizeBytes: deviceBytes, Link: d.Path}
		d.Path, d.SizeBytes = testreq.Loop(t, d.Path), deviceBytes
	}
	return w
}

func prefill(t *testing.T, w load.Workload) error {
	t.Helper()
	w.Prefill = true
	return loadtest.Drive(t.Context(), pgbench.Generator{}, w, &loadtest.Log{})
}

func TestBlockDevices(t *testing.T) {
	for _, c := range []struct{ kind, mount, recorded string }{
		{"ext4", "noatime,data=writeback", "ext4 (noatime,data=writeback)"}, {"xfs", "", "xfs (noatime)"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			testreq.Program(t, "mkfs."+c.kind)
			options := map[string]string{"scale": "1", "clients": "4", "wal_disk": "/dev/sdc", "file_system": c.kind, "max_wal_size": "64MB"}
			if c.mount != "" {
				options["mount_options"] = c.mount
			}
			w := onDevices(t, options)
			for range 2 { // a second prefill replaces the run's own file systems without further consent
				if err := prefill(t, w); err != nil {
					t.Fatal(err)
				}
			}
			w.Runtime = 500 * time.Millisecond
			for range 2 {
				in, err := pgbench.Generator{}.Prepare(t.Context(), w)
				if err != nil {
					t.Fatal(err)
				}
				if text := in.(load.Describer).Engine().String(); !strings.Contains(text, "/dev/sdb: "+c.recorded+" and /dev/sdc: "+c.recorded) {
					t.Errorf("engine %s", text)
				}
				if _, _, err := blockdev.Open(w.Devices[1].Path, load.Consent{Own: true, SizeBytes: deviceBytes}, os.O_RDWR); err == nil {
					t.Error("the device of the WAL is not in use")
				}
				if mounts, _ := os.ReadFile("/proc/self/mounts"); strings.Contains(string(mounts), w.Devices[0].Path+" ") {
					t.Error("other programs see the mount")
				}
				if err := in.Run(t.Context(), &loadtest.Log{}); err != nil {
					t.Fatal(err)
				}
				said := in.(load.Teller).Outputs()[0].Text
				if !strings.Contains(said, "disk /dev/sdc: "+c.kind+" on device 7:") || !strings.Contains(said, "noatime") {
					t.Errorf("output without the facts of the mount:\n%s", said)
				}
			}
			for _, d := range w.Devices {
				loadtest.Released(t, d, c.kind)
			}
		})
	}
}

// head is the first 64 MiB of a device, with the superblock and journal of a small file system.
func head(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Devices that hold anything need the consent of the user, and a load mounts no file system but the one of a prefill of its run.
func TestForeignFileSystem(t *testing.T) {
	w := onDevices(t, map[string]string{"scale": "1"})
	d := w.Devices[0]
	if out, err := exec.Command(testreq.Program(t, "mkfs.ext4"), "-q", "-F", "-L", "keep", d.Path).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	before := head(t, d.Path)
	code := func(err error) string {
		var e *diag.Error
		if errors.As(err, &e) {
			return e.Code
		}
		return ""
	}
	if err := prefill(t, w); code(err) != "unsafe-device" || !strings.Contains(err.Error(), "ext4") {
		t.Errorf("prefill: %v", err)
	}
	if _, err := (pgbench.Generator{}).Prepare(t.Context(), w); code(err) != "unsafe-device" {
		t.Errorf("load: %v", err)
	}
	w.Devices[0].Consent.Overwrite = []string{"ext4"}
	if _, err := (pgbench.Generator{}).Prepare(t.Context(), w); code(err) != "no-file-system" {
		t.Errorf("load with consent: %v", err)
	}
	if head(t, d.Path) != before {
		t.Error("the device has changed")
	}
	if err := prefill(t, w); err != nil {
		t.Errorf("prefill with consent: %v", err)
	}
	other := w
	other.Seed++
	if _, err := (pgbench.Generator{}).Prepare(t.Context(), other); code(err) != "no-file-system" {
		t.Errorf("load of another run: %v", err)
	}
	other = w
	other.Options = map[string]string{"scale": "1", "file_system": "xfs"}
	if _, err := (pgbench.Generator{}).Prepare(t.Context(), other); code(err) != "no-file-system" || !strings.Contains(err.Error(), "ext4") {
		t.Errorf("load with another type: %v", err)
	}
}

// TestDevicesAfterKill kills the process that has devices mounted, as power off does with an agent.
func TestDevicesAfterKill(t *testing.T) {
	w := onDevices(t, map[string]string{"scale": "1", "clients": "4"})
	d := w.Devices[0]
	if err := prefill(t, w); err != nil {
		t.Fatal(err)
	}
	loadtest.Orphans(t, []string{helperDisk + "=" + d.Path, helperLink + "=" + d.Consent.Link}, 5, func() {}, func() []string { return nil })
	loadtest.Released(t, d, "ext4")
	w.Runtime = 300 * time.Millisecond
	if err := loadtest.Drive(t.Context(), pgbench.Generator{}, w, &loadtest.Log{}); err != nil {
		t.Errorf("start again: %v", err)
	}
	loadtest.Released(t, d, "ext4")
}

// A disk that is full fails the prefill with the words of PostgreSQL, and is released.
func TestFullDevice(t *testing.T) {
	w := onDevices(t, map[string]string{"scale": "25", "wal_disk": "/dev/sdc"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w.Prefill = true
	err := loadtest.Drive(ctx, pgbench.Generator{}, w, &loadtest.Log{})
	if err == nil || !strings.Contains(err.Error(), "No space left on device") {
		t.Errorf("prefill: %v", err)
	}
	loadtest.Released(t, w.Devices[0], "ext4")
	if left, _ := filepath.Glob("pgbench-sdb/sdb/*"); len(left) > 0 {
		t.Errorf("files beside the mount: %q", left)
	}
}
