package rehearsal

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// TestPlaybookOnGuests: playbooks prepare databases in guests of a distribution and run pgbench there, as public scenarios of X-Ray do it.
func TestPlaybookOnGuests(t *testing.T) {
	path := testreq.CloudImage(t) // with PostgreSQL, its exporter and Python, as "make build/cloud.qcow2" makes it
	r := newRigOf(t, programs(t), map[string]string{"cloud": path})
	r.rehearse(t, rehearsal{scenario: filepath.Join("testdata", "playbook"), length: "120s", shell: true, check: exported,
		marks: []string{"playbook.Run pgbench.yml"}}, "libvirt")
}

var processedPattern = regexp.MustCompile(`number of transactions actually processed: (\d+)`)

// exported wants the transactions of pgbench's own report in the counters that were scraped.
func exported(t *testing.T, rec *record) {
	texts, err := filepath.Glob(filepath.Join(rec.dir, "attachments", "output", "playbook-*.log"))
	if err != nil {
		t.Fatal(err)
	}
	var processed, vms float64
	for _, path := range texts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s:\n%s", filepath.Base(path), text)
		for _, m := range processedPattern.FindAllStringSubmatch(string(text), -1) {
			n, _ := strconv.ParseFloat(m[1], 64)
			processed += n
			vms++
		}
	}
	first, last := map[string]float64{}, map[string]float64{}
	for _, s := range rec.samples {
		if vm := s.Labels["vm"]; s.Name == "pg_stat_database_xact_commit" && s.Labels["datname"] == "bench" {
			if _, seen := first[vm]; !seen {
				first[vm] = s.Value
			}
			last[vm] = s.Value
		}
	}
	var counted float64
	for vm := range last {
		counted += last[vm] - first[vm]
	}
	t.Logf("%.0f transactions by pgbench's report on %.0f VMs, %.0f by the exporters of %d", processed, vms, counted, len(last))
	// The server also counts its own, such as those of autovacuum; the exporter uses another database.
	if vms != 2 || len(last) != 2 || counted < processed || counted > 1.01*processed+200 {
		t.Errorf("%.0f transactions by pgbench's report on %.0f VMs, %.0f by the exporters of %d", processed, vms, counted, len(last))
	}
}
