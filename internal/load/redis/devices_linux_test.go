package redis_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/redis"
	"github.com/braggdev/bragg/internal/testreq"
)

// onDevice returns a load on a small loop device.
func onDevice(t *testing.T, bytes int64, options map[string]string) load.Workload {
	t.Helper()
	needRedis(t)
	testreq.Root(t)
	testreq.Program(t, "mkfs.ext4")
	t.Chdir(t.TempDir()) // the agent's folder
	w := workload(t, options)
	d := &w.Devices[0]
	if err := os.Truncate(d.Path, bytes); err != nil {
		t.Fatal(err)
	}
	d.Consent = load.Consent{SizeBytes: bytes, Link: d.Path}
	d.Path, d.SizeBytes = testreq.Loop(t, d.Path), bytes
	return w
}

// A disk that is full fails the prefill or the load with the words of the server: of its log where its answer has none, and where it ended.
func TestFullDevice(t *testing.T) {
	const full = "No space left on device"
	const short = "Short write while writing to the AOF file" // Redis names no cause if a part was written
	t.Run("snapshot", func(t *testing.T) {
		w := onDevice(t, 16<<20, map[string]string{"keys": "800000", "value_size": "1B"})
		if err := prefill(t, w); err == nil || !strings.Contains(err.Error(), full) {
			t.Errorf("prefill: %v", err)
		}
		loadtest.Released(t, w.Devices[0], "ext4")
	})
	for _, sync := range []string{"always", "everysec"} {
		t.Run("append-only "+sync, func(t *testing.T) {
			w := onDevice(t, 64<<20, map[string]string{"keys": "1000", "value_size": "10KiB", "commands": "set", "appendonly": "yes", "appendfsync": sync,
				"auto_aof_rewrite_percentage": "0"})
			if err := prefill(t, w); err != nil {
				t.Fatal(err)
			}
			w.Runtime = time.Minute
			if err := loadtest.Drive(t.Context(), redis.Generator{}, w, &loadtest.Log{}); err == nil || !strings.Contains(err.Error(), full) && !strings.Contains(err.Error(), short) {
				t.Errorf("load: %v", err)
			}
			loadtest.Released(t, w.Devices[0], "ext4")
		})
	}
	if left, _ := filepath.Glob("redis-sdb/sdb/*"); len(left) > 0 {
		t.Errorf("files beside the mount: %q", left)
	}
}
