package commitlatency_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/commitlatency"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// TestSplit: the client measures a server on another VM, where each commit is a row. The bare write needs the server's disk, and is left out.
func TestSplit(t *testing.T) {
	s := loadtest.Serve(t, commitlatency.Generator{}, prefilled(t, map[string]string{"wal_disk": "/dev/sdc"}), 1)
	w := s.Clients[0]
	w.Runtime = time.Second
	in, err := commitlatency.Generator{}.Prepare(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	engine := in.(load.Describer).Engine()
	if slices.Contains(engine.Operations, "fdatasync") || len(engine.Operations) != 3 {
		t.Errorf("operations %q", engine.Operations)
	}
	var log loadtest.Log
	if err := in.Run(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	loadtest.CheckIntervals(t, w, log.Intervals())
	commits := uint64(0)
	sum := loadtest.Add(log.Intervals())
	for i, name := range engine.Operations {
		if name != "round-trip" {
			commits += sum.Directions[i].Operations
		}
	}
	psql := exec.CommandContext(t.Context(), "psql", "--no-psqlrc", "--tuples-only", "--no-align", "--command=SELECT count(*) FROM bragg_commits")
	psql.Env = []string{"PATH=/usr/bin:/bin", "PGHOST=127.0.0.1", fmt.Sprintf("PGPORT=%d", s.Port), "PGUSER=bragg", "PGDATABASE=bragg", "PGPASSWORD=" + loadtest.Password}
	if rows, err := psql.CombinedOutput(); err != nil || strings.TrimSpace(string(rows)) != fmt.Sprint(commits) || commits == 0 {
		t.Errorf("%s rows of %d commits, %v", rows, commits, err)
	}
	w.Options = map[string]string{"operations": "commit fdatasync"}
	if _, err := (commitlatency.Generator{}).Plan(w); err == nil || !strings.Contains(err.Error(), "not on the VM of the client") {
		t.Errorf("the bare write on the VM of the client: %v", err)
	}
}
