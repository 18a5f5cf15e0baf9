package pgbench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/pgbench"
)

const (
	helperDisk    = "BRAGG_PGBENCH_TEST_DISK"
	helperPrefill = "BRAGG_PGBENCH_TEST_PREFILL"
	helperLink    = "BRAGG_PGBENCH_TEST_LINK" // of a block device
	deviceBytes   = 320 << 20                 // of loop devices
)

func TestMain(m *testing.M) {
	if os.Getenv(helperDisk) != "" {
		helper()
	}
	os.Exit(m.Run())
}

// helper is another process of this test binary, which runs a load until it is killed.
func helper() {
	w := load.Workload{Name: "w", Options: map[string]string{"scale": "1", "clients": "4", "latency_limit": "1h", "rate": "100"}, IntervalLength: 100 * time.Millisecond,
		Devices: []load.Device{{Name: "/dev/sdb", Path: os.Getenv(helperDisk), SizeBytes: 8 << 30}}, Prefill: os.Getenv(helperPrefill) != ""}
	if link := os.Getenv(helperLink); link != "" {
		w.Seed, w.Devices[0].SizeBytes = 42, deviceBytes
		w.Devices[0].Consent = load.Consent{SizeBytes: deviceBytes, Link: link}
	}
	if w.Prefill {
		w.Options["scale"] = "200"
	}
	loadtest.BeHelper(pgbench.Generator{}, w)
}

// TestProgramsDieWithUs kills a process that runs a server and pgbench, as power off does with an agent, and then starts again.
func TestProgramsDieWithUs(t *testing.T) {
	needPostgreSQL(t)
	for _, prefill := range []string{"", "1"} {
		w := prefilled(t, map[string]string{"scale": "1", "clients": "4"})
		before := segments(t)
		room := filepath.Join(filepath.Dir(w.Devices[0].Path), "pgbench-sdb")
		loadtest.Orphans(t, []string{helperDisk + "=" + w.Devices[0].Path, helperPrefill + "=" + prefill}, 5, func() {
			if len(users(t, room)) < 2 {
				t.Errorf("processes %v use %s, want the server and pgbench", users(t, room), room)
			}
		}, func() []string { return users(t, room) })
		for _, s := range segments(t) {
			if !slices.Contains(before, s) {
				t.Errorf("shared memory stays: %s", s)
			}
		}
		if prefill == "" { // the server recovers
			w.Runtime = 300 * time.Millisecond
			if err := loadtest.Drive(t.Context(), pgbench.Generator{}, w, &loadtest.Log{}); err != nil {
				t.Errorf("start again: %v", err)
			}
		}
	}
}

// users lists processes with an open file below a folder.
func users(t *testing.T, folder string) (list []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, link := range links {
		pid := strings.Split(link, "/")[2]
		to, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(to, folder) && !seen[pid] && pid != fmt.Sprint(os.Getpid()) {
			seen[pid], list = true, append(list, pid)
		}
	}
	return list
}

// segments lists System V shared memory of this machine that has a key, as that of PostgreSQL has and that of browsers has not, and, for
// root, POSIX shared memory: initdb tests it when it begins, and other users cannot hide it from the machine.
func segments(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] != "0" && words[0] != "key" {
			list = append(list, words[0]+" "+words[1])
		}
	}
	if os.Geteuid() == 0 {
		posix, _ := filepath.Glob("/dev/shm/PostgreSQL*")
		list = append(list, posix...)
	}
	return list
}
