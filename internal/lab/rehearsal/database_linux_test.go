package rehearsal

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// TestDatabaseOnGuests runs pgbench in a guest of a distribution, with its data on one virtual disk and its WAL on another, through a snapshot and a
// live migration. Its table of history must have a row for each transaction that was recorded.
func TestDatabaseOnGuests(t *testing.T) {
	path := testreq.CloudImage(t) // with PostgreSQL and xfsprogs, as "make build/cloud.qcow2" makes it
	r := newRigOf(t, programs(t), map[string]string{"cloud": path})
	r.rehearse(t, rehearsal{scenario: filepath.Join("testdata", "database"), length: "45s", size: "1GiB", check: committed,
		marks: []string{"napshot", `migrating 1 VMs from node "host-1" to node "host-2"`, "finished migrating 1 VMs"}}, "libvirt")
}

var historyPattern = regexp.MustCompile(`pgbench_history has (\d+) rows more than before the load, and (\d+) transactions were recorded`)

// committed wants as many rows as transactions in the intervals, and transactions after the migration.
func committed(t *testing.T, rec *record) {
	_, moved := rec.step(t, "vm_group.MigrateGroup")
	late, failed := rec.done("OLTP", moved, ever)
	working(t, "OLTP after the migration", late, failed, 1)
	byVM, failed := rec.done("OLTP", 0, ever)
	working(t, "OLTP", byVM, failed, 1)
	var all uint64
	for _, n := range byVM {
		all += n
	}
	t.Logf("%d transactions, %v after the migration", all, late)
	texts, err := filepath.Glob(filepath.Join(rec.dir, "attachments", "programs", "OLTP", "*-pgbench.txt"))
	if err != nil || len(texts) == 0 {
		t.Fatalf("outputs of pgbench: %q, %v", texts, err)
	}
	found := false
	for _, path := range texts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if m := historyPattern.FindStringSubmatch(string(text)); m != nil {
			found = true
			if m[1] != m[2] || m[2] != strconv.FormatUint(all, 10) {
				t.Errorf("%s; the intervals have %d", m[0], all)
			}
		}
		t.Logf("%s:\n%s", filepath.Base(path), text)
	}
	if !found {
		t.Error("no output counts the rows")
	}
}
