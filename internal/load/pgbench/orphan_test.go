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
	code := m.Run()
	fills.Remove()
	os.Exit(code)
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
			// Intervals begin with the load, and its programs somewhat later on a busy machine: initdb takes seconds there.
			for give := time.Now().Add(time.Minute); len(users(t, room)) < 2; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(give) {
					t.Errorf("processes %v use %s, want the server and pgbench", users(t, room), room)
					return
				}
			}
		}, func() []string { return users(t, room) })
		left := func() []string {
			return slices.DeleteFunc(segments(t), func(s string) bool { return slices.Contains(before, s) })
		}
		for give := time.Now().Add(30 * time.Second); len(left()) > 0; time.Sleep(100 * time.Millisecond) {
			if time.Now().After(give) {
				t.Errorf("shared memory stays: %q", left())
				break
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

// segments lists shared memory that no process uses: a PostgreSQL of someone else has its own. Of System V it has a key, as that of PostgreSQL
// has and that of browsers has not. Of POSIX it is looked for as root: initdb tests it when it begins, and other users cannot hide it from the machine.
func segments(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/sysvipc/shm") // key, id, permissions, size, creator, last user, attached
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 6 && words[0] != "0" && words[0] != "key" && words[6] == "0" {
			list = append(list, words[0]+" "+words[1])
		}
	}
	if os.Geteuid() != 0 {
		return list
	}
	posix, _ := filepath.Glob("/dev/shm/PostgreSQL*")
	return append(list, slices.DeleteFunc(posix, mapped)...)
}

// mapped reports whether a process has a file mapped.
func mapped(path string) bool {
	processes, _ := filepath.Glob("/proc/[0-9]*/maps")
	for _, p := range processes {
		if text, err := os.ReadFile(p); err == nil && strings.Contains(string(text), path+"\n") {
			return true
		}
	}
	return false
}
