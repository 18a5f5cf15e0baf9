package report_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
)

var update = flag.Bool("update", false, "rewrite goldens")

func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var got bytes.Buffer
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s differs from its golden; go test -update rewrites it. Got:\n%s", name, got.Bytes())
	}
}

func TestGoldens(t *testing.T) {
	run := smallRun()
	terminal := func(run *document.Run, width int, color bool) func(io.Writer) error {
		return func(w io.Writer) error { return report.Terminal(w, run, width, color) }
	}
	golden(t, "terminal-120.txt", terminal(run, 120, false))
	golden(t, "terminal-60.txt", terminal(run, 60, false))
	golden(t, "terminal-color.txt", terminal(rehearsalRun(), 0, true))
	golden(t, "brief-100.txt", func(w io.Writer) error { return report.Brief(w, run, 100, false) })
	golden(t, "brief-rehearsal-100.txt", func(w io.Writer) error { return report.Brief(w, manyFindings(), 100, false) })
	golden(t, "report.json", func(w io.Writer) error { return document.JSON(w, run) })
	golden(t, "report.csv", func(w io.Writer) error { return document.CSV(w, run) })
	golden(t, "junit.xml", func(w io.Writer) error { return report.JUnit(w, run) })
	golden(t, "points.csv", func(w io.Writer) error { return document.CSVPoints(w, run) })
}

func TestComparisonGoldens(t *testing.T) {
	other := newFixture(9, 1.2)
	other.every = 120
	second := other.run("20250922-101502-p0qqwe")
	second.Manifest.Label = "cluster A, firmware 4.3"
	second.Manifest.Versions["kernel"] = "6.12.3"
	c, err := compare.Runs([]*document.Run{smallRun(), second}, compare.Options{AlignAt: "nodes.poweroff"})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "compare-120.txt", func(w io.Writer) error { return report.ComparisonTerminal(w, c, 120, false) })
	golden(t, "compare-60.txt", func(w io.Writer) error { return report.ComparisonTerminal(w, c, 60, false) })
	golden(t, "compare.json", c.JSON)
}

func TestSetsGoldens(t *testing.T) {
	runs := func(seed uint64, speed float64) []*document.Run {
		var list []*document.Run
		for i := range uint64(3) {
			f := newFixture(seed+i, speed*(1+float64(i)/500))
			f.every = 120
			list = append(list, f.run(fmt.Sprintf("20250921-%d-aaaaa%d", 100000+seed, i)))
		}
		return list
	}
	c, err := compare.OfSets(runs(1, 1), runs(11, 1.2), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "sets-120.txt", func(w io.Writer) error { return report.ComparisonTerminal(w, c, 120, false) })
	var page bytes.Buffer
	if err := report.ComparisonHTML(&page, c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Is B different from A", c.Headline, "B ÷ A"} {
		if !strings.Contains(page.String(), template.HTMLEscapeString(want)) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
