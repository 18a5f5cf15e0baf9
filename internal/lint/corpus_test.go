package lint_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/lint"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/commitlatency"
	"github.com/braggdev/bragg/internal/load/hammerdb"
	"github.com/braggdev/bragg/internal/load/iperf3"
	"github.com/braggdev/bragg/internal/load/mlperf"
	"github.com/braggdev/bragg/internal/load/pgbench"
	"github.com/braggdev/bragg/internal/load/redis"
	"github.com/braggdev/bragg/internal/load/stream"
	"github.com/braggdev/bragg/internal/load/sysbench"
	"github.com/braggdev/bragg/internal/load/vdbench"
	"github.com/braggdev/bragg/internal/load/vioperf"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/step"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/verb"
)

var catalog = verb.Catalog{Steps: step.All(), Generators: load.Kinds{{Name: "native", Generator: planner{}, JobFiles: true}, {Name: "fio", Generator: planner{}, JobFiles: true},
	{Name: pgbench.Name, Generator: pgbench.Generator{}}, {Name: stream.Name, Generator: stream.Generator{}},
	{Name: iperf3.Name, Generator: iperf3.Generator{}, Servers: load.ServersMust}, {Name: commitlatency.Name, Generator: commitlatency.Generator{}},
	{Name: hammerdb.Name, Generator: hammerdb.Generator{}}, {Name: redis.Name, Generator: redis.Generator{}},
	{Name: vioperf.Name, Generator: vioperf.Generator{}}, {Name: vdbench.Name, Generator: vdbench.Generator{}},
	{Name: sysbench.Name, Generator: sysbench.Generator{}}, {Name: mlperf.Name, Generator: mlperf.Generator{}}}, CheckQuery: checkQuery}

// checkQuery replaces the parser of the metric store.
func checkQuery(query, _ string) *verb.QueryFault {
	if at := strings.Index(query, "wrong"); at >= 0 {
		return &verb.QueryFault{Offset: at, Length: len("wrong"), Reason: "this is wrong"}
	}
	return nil
}

// planner takes the options of the shipped scenarios and no other.
type planner struct{}

func (planner) Plan(w load.Workload) (load.Plan, error) {
	for name := range w.Options {
		if name != "backend" && name != "rate_scale" {
			return load.Plan{}, fmt.Errorf("there is no option %q", name)
		}
	}
	return load.Plan{}, nil
}

func (planner) Prepare(context.Context, load.Workload) (load.Instance, error) {
	return nil, errors.New("plans only")
}

func describe(all []finding.Finding) string {
	var b strings.Builder
	for _, f := range all {
		if f.Pos != nil {
			fmt.Fprintf(&b, "%s:%d: ", filepath.Base(f.Pos.File), f.Pos.Line)
		}
		fmt.Fprintf(&b, "%s: %s", f.Severity, f.Claim)
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, " (%s)", e)
		}
		if f.Advice != "" {
			fmt.Fprintf(&b, " → %s", f.Advice)
		}
		fmt.Fprintf(&b, " [%s]\n", f.Code)
	}
	return b.String()
}

func TestCorpusHasNoErrors(t *testing.T) {
	docs, err := filepath.Glob(filepath.Join(testreq.Corpus(t, "xray"), "*", "*", "test.yml"))
	if err != nil || len(docs) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	var b strings.Builder
	for _, doc := range docs {
		sc, err := scenario.Load(context.Background(), scenario.Source{Path: doc, Trusted: true}, scenario.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all := lint.Check(sc, catalog)
		for _, f := range all {
			if f.Severity == finding.Fail || f.Severity == finding.Undecided {
				t.Errorf("%s: %s", doc, describe([]finding.Finding{f}))
			}
		}
		all = slices.DeleteFunc(all, func(f finding.Finding) bool { return f.Code == "job-file" }) // fiojob has its own goldens
		fmt.Fprintf(&b, "%s\n%s\n", filepath.Base(filepath.Dir(doc)), describe(all))
	}
	golden(t, "testdata/corpus.golden", b.String())
}
