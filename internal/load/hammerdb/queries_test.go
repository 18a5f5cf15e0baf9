package hammerdb_test

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/hammerdb"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

func recorded(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readSets reads whole lines, as a load does.
func readSets(text string) (s hammerdb.Sets, queries []hammerdb.Query) {
	for line := range strings.Lines(text) {
		if line, whole := strings.CutSuffix(line, "\n"); whole {
			if q, _ := s.Line(line); q != nil {
				queries = append(queries, *q)
			}
		}
	}
	return s, queries
}

// TestSets reads what HammerDB printed at scale factor 1 on PostgreSQL: its geometric mean is that of the times it reports.
func TestSets(t *testing.T) {
	text := recorded(t, "4.12-queries.txt")
	sets, queries := readSets(text)
	if len(queries) != 22 || len(sets.Done) != 1 {
		t.Fatalf("%d queries in %d sets", len(queries), len(sets.Done))
	}
	set := sets.Done[0]
	if set.User != 1 || set.Number != 1 || set.Wall != 16*time.Second || set.Mean != 0.48547 || set.Returned != 22 {
		t.Errorf("%+v", set)
	}
	if own := set.GeometricMean(); math.Abs(own-0.48547) > 5e-6 {
		t.Errorf("the geometric mean is %.6f", own)
	}
	if q := queries[2]; q != (hammerdb.Query{Number: 9, Time: 1300 * time.Millisecond}) {
		t.Errorf("the third query: %+v", q)
	}
	if err := set.Check(); err != nil {
		t.Error(err)
	}
	// Older versions state no mean.
	without := strings.ReplaceAll(text, "Geometric mean", "no mean")
	if sets, _ := readSets(without); sets.Done[0].Returned != 0 || math.Abs(sets.Done[0].Stated()-0.48547) > 5e-6 || sets.Done[0].Check() != nil {
		t.Errorf("without a mean: %+v", sets.Done[0])
	}
}

// TestSetsOfUsers reads lines of several users, which HammerDB mixes.
func TestSetsOfUsers(t *testing.T) {
	var mixed strings.Builder
	for line := range strings.Lines(recorded(t, "4.12-queries.txt")) {
		for _, user := range []string{"Vuser 1:", "Vuser 2:", "Vuser 13:"} {
			mixed.WriteString(strings.Replace(line, "Vuser 1:", user, 1))
		}
	}
	sets, queries := readSets(mixed.String())
	var users []int
	for _, s := range sets.Done {
		if users = append(users, s.User); s.Check() != nil || s.Mean != 0.48547 {
			t.Errorf("%+v: %v", s, s.Check())
		}
	}
	if len(queries) != 66 || !slices.Equal(users, []int{1, 2, 13}) {
		t.Errorf("%d queries, sets of %v", len(queries), users)
	}
}

// TestSetsThatDiffer changes the output so that its parts contradict each other.
func TestSetsThatDiffer(t *testing.T) {
	text := recorded(t, "4.12-queries.txt")
	for name, c := range map[string]struct{ was, is, want string }{
		"mean":          {"is 0.48547", "is 0.48549", "the geometric mean"},
		"time":          {"query 9 completed in 1.3 seconds", "query 9 completed in 1.31 seconds", "the geometric mean"},
		"set":           {"set(s) in 16 seconds", "set(s) in 14 seconds", "reports 14s for all"},
		"missing query": {"Vuser 1:query 9 completed in 1.3 seconds\n", "", "has 21 queries"},
		"query twice":   {"query 9 completed", "query 8 completed", "21 of them different"},
	} {
		sets, _ := readSets(strings.Replace(text, c.was, c.is, 1))
		if err := sets.Done[0].Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// setFiles are outputs of runs, with their users and the geometric mean that each of them has.
var setFiles = map[string][]hammerdb.QuerySet{
	"4.12-queries.txt":        {{User: 1, Wall: 16 * time.Second, Mean: 0.48547}},
	"5.0-queries.txt":         {{User: 2, Wall: 56 * time.Second, Mean: 1.61010}, {User: 1, Wall: 57 * time.Second, Mean: 1.65955}},
	"5.0-queries-mariadb.txt": {{User: 1, Wall: 79 * time.Second, Mean: 1.32231}, {User: 2, Wall: 83 * time.Second, Mean: 1.31911}},
}

// TestRecordedSets reads what versions of HammerDB printed, whole and cut at every byte: a set is there only with its whole line, and no
// query has another time.
func TestRecordedSets(t *testing.T) {
	for name, want := range setFiles {
		text := recorded(t, name)
		whole, queries := readSets(text)
		if len(whole.Done) != len(want) || len(queries) != 22*len(want) {
			t.Fatalf("%s: %d queries in %d sets", name, len(queries), len(whole.Done))
		}
		for i, set := range whole.Done {
			if err := set.Check(); err != nil || set.User != want[i].User || set.Wall != want[i].Wall || set.Mean != want[i].Mean || set.Returned != 22 {
				t.Errorf("%s: %+v, %v, want %+v", name, set, err, want[i])
			}
		}
		for i := range len(text) {
			sets, some := readSets(text[:i])
			if !slices.Equal(some, queries[:len(some)]) {
				t.Fatalf("%s cut at %d: %+v", name, i, some)
			}
			for n, set := range sets.Done {
				if len(set.Queries) != 22 || set.Wall != whole.Done[n].Wall {
					t.Fatalf("%s cut at %d: %+v", name, i, sets.Done)
				}
			}
		}
	}
}

func FuzzSets(f *testing.F) {
	f.Add(recorded(f, "4.12-queries.txt"))
	f.Add(recorded(f, "4.12-queries-failed.txt"))
	f.Add(recorded(f, "5.0-queries.txt"))
	f.Add("Vuser 1:query 99 completed in 999999999.999999999 seconds\nVuser 1:Completed 0 query set(s) in 0 seconds\n")
	f.Fuzz(func(_ *testing.T, text string) {
		sets, _ := readSets(text)
		for _, s := range sets.Done {
			_ = s.Check()
		}
	})
}

func queryOptions(server string, more map[string]string) map[string]string {
	options := map[string]string{"test": "tproc-h", "server": server, "scale_factor": "1"}
	maps.Copy(options, more)
	return options
}

// queried returns a load of TPROC-H whose data was built.
func queried(t *testing.T, home, server string) load.Workload {
	t.Helper()
	return prefilledBy(t, home, server, queryOptions(server, nil))
}

// TestQueries: a load of TPROC-H has an operation for each query, with the time that HammerDB reports, and the same times as series.
func TestQueries(t *testing.T) {
	for _, server := range []string{"postgresql", "mysql"} {
		t.Run(server, func(t *testing.T) {
			w := queried(t, played(t), server)
			in, err := hammerdb.Generator{}.Prepare(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			engine := in.(load.Describer).Engine()
			var log loadtest.Log
			if err := in.Run(t.Context(), &log); err != nil {
				t.Fatal(err)
			}
			sum := loadtest.Add(log.Intervals())
			if d := sum.Directions[0]; d.Operations != 22 || math.Abs(d.Service.Sum()/1e9-15.464) > 0.1 {
				t.Errorf("%d queries of %v s", d.Operations, d.Service.Sum()/1e9)
			}
			ivs := log.Intervals()
			last := ivs[len(ivs)-1].Gauges
			for name, want := range map[string]float64{"query 9": 1.3, "query 22": 0.097, "geometric mean of queries": 0.48547, "query set": 16} {
				if n := slices.IndexFunc(engine.Gauges, func(g interval.Gauge) bool { return g.Name == name }); n < 0 || last[n] != want {
					t.Errorf("%s: gauge %d of %v, want %v", name, n, last, want)
				}
			}
			w.Options["query_sets"] = "3" // with which the played program reports a failure
			if err := loadtest.Drive(t.Context(), hammerdb.Generator{}, w, &log); err == nil || !strings.Contains(err.Error(), `column "s_nationkey" does not exist`) {
				t.Errorf("a query that fails: %v", err)
			}
		})
	}
}

func TestContractOfQueries(t *testing.T) {
	w := queried(t, played(t), "postgresql")
	w.Options["query_sets"] = "1000"
	loadtest.RunAny(t, loadtest.Subject{Generator: hammerdb.Generator{}, Endless: func(testing.TB) load.Workload { return w }})
	checkOrphans(t, w)
}

func TestRefusedQueries(t *testing.T) {
	for want, more := range map[string]map[string]string{
		"not one of TPC-H":      {"scale_factor": "2"},
		"on one thread":         {"workers": "4", "server": "mysql"},
		`no option "warehouses`: {"warehouses": "1"},
		"of tproc-c, tproc-h":   {"test": "tpch"},
	} {
		w := workload(t, queryOptions("postgresql", more))
		if want != `no option "warehouses` {
			delete(w.Options, "warehouses")
		}
		if _, err := (hammerdb.Generator{}).Plan(w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", more, err, want)
		}
	}
	w := workload(t, queryOptions("postgresql", nil))
	delete(w.Options, "warehouses")
	w.Scale.Factor = 0.02
	w.Options["scale_factor"], w.Devices[0].SizeBytes = "1000", 1<<40
	p, err := hammerdb.Generator{}.Plan(w)
	if err != nil || !strings.Contains(strings.Join(p.Program.Commands, "\n"), "pg_scale_fact 10;") {
		t.Errorf("a rehearsal of a fiftieth: %+v, %v", p.Program, err)
	}
}
