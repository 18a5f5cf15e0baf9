package rehearsal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// TestFilesOnGuests carries out shipped scenarios whose loads keep files on virtual disks, in guests of a distribution. The prefill makes the
// file system, and the load states it.
func TestFilesOnGuests(t *testing.T) {
	path := testreq.CloudImage(t)
	r := newRigOf(t, programs(t), map[string]string{"ubuntu1604": path})
	for _, c := range []rehearsal{
		{name: "vertica_storage", scenario: "vertica_storage", set: []string{"vcpus=1", "disk_gib=2", "required=1"}, length: "40s", size: "1GiB",
			check: onFileSystem("With CRC", "Without CRC")},
		{name: "ml_training", scenario: "ml_training", length: "40s", size: "1GiB", check: onFileSystem("Search", "Training")},
	} {
		t.Run(c.name, func(t *testing.T) { r.rehearse(t, c, "libvirt") })
	}
}

// onFileSystem wants workloads to have worked without errors, on ext4.
func onFileSystem(workloads ...string) func(*testing.T, *record) {
	return func(t *testing.T, rec *record) {
		for _, name := range workloads {
			operations, errors := rec.done(name, 0, ever)
			working(t, name, operations, errors, 1)
		}
		text, err := os.ReadFile(filepath.Join(rec.dir, "summary.json"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "/dev/sdb: ext4 (noatime)"); n == 0 {
			t.Error("the summary does not state the file system")
		}
	}
}
