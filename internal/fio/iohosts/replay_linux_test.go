package iohosts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
)

// TestReplayOnHosts: each host replays its own log, and none that writes where nothing may.
func TestReplayOnHosts(t *testing.T) {
	r := newRig(t, 2)
	for host := range 2 {
		file := filepath.Join(r.files, fmt.Sprint(host), "data")
		log := "fio version 3 iolog\n0 " + file + " add\n" + strings.Repeat("0 "+file+" write 0 4096\n", 10*(host+1))
		if err := os.WriteFile(filepath.Join(r.files, fmt.Sprint(host), "log"), []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.jobs(t, "[again]\nread_iolog=@/log\n")
	clients, err := r.run(t)
	if err != nil {
		t.Fatal(err, r.everything())
	}
	for i, c := range clients.Hosts {
		if got, want := c.Report.Rows[0].Directions[interval.Write].Operations, uint64(10*(i+1)); got != want {
			t.Errorf("host %d did %d operations, its log has %d", i, got, want)
		}
	}
	r.options.Jobs.ReadOnly = true
	if _, err := r.run(t); err == nil || !strings.Contains(err.Error()+r.everything(), "--readonly forbids it") {
		t.Errorf("a log that writes: %v", err)
	}
	r.clean(t)
}
