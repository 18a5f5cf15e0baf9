package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// row is one row of statistics as any form of the report shows it.
type row struct{ result, window, series string }

// numbers are mean, median, p95, p99, p99.9, max and CV.
type numbers [7]string

// TestAllFormsSayTheSame reads the statistics back from every form and compares them with the bundle's.
func TestAllFormsSayTheSame(t *testing.T) {
	run := exampleRun()
	exact, shown := expected(run)
	if len(exact) < 40 {
		t.Fatalf("the fixture has only %d rows of statistics", len(exact))
	}
	compareRows(t, "JSON", readJSON(t, run), exact)
	compareRows(t, "CSV", readCSV(t, run), exact)
	compareRows(t, "terminal", readTerminal(t, run), shown)
	compareRows(t, "HTML", readHTML(t, run), shown)
}

func compareRows(t *testing.T, form string, got, want map[row]numbers) {
	t.Helper()
	for key, w := range want {
		if g, ok := got[key]; !ok {
			t.Errorf("%s lacks %v", form, key)
		} else if g != w {
			t.Errorf("%s of %v says %v, want %v", form, key, g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s has %d rows, want %d", form, len(got), len(want))
	}
}

// expected takes the rows from the bundle, with full precision and as people see them.
func expected(run *document.Run) (exact, shown map[row]numbers) {
	exact, shown = map[row]numbers{}, map[row]numbers{}
	for _, r := range run.Summary.Results {
		for _, s := range r.Stats {
			values := []result.Number{s.Mean, s.Median, s.P95, s.P99, s.P999, s.Max, s.CV}
			var e, p numbers
			for i, v := range values {
				e[i] = full(float64(v))
				p[i] = draw.Amount(float64(v), r.Unit)
			}
			p[6] = unit.FormatPercent(float64(s.CV))
			exact[row{r.Title, s.Window, s.Series + "/" + s.Kind}] = e
			window, series := s.Window, s.Series
			if window == "" {
				window = "whole result"
			}
			if s.Kind != "" {
				series += ", " + s.Kind + " time"
			}
			shown[row{r.Title, window, series}] = p
		}
	}
	return exact, shown
}

func full(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func readJSON(t *testing.T, run *document.Run) map[row]numbers {
	var b bytes.Buffer
	if err := document.JSON(&b, run); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Results []struct {
			Title      string `json:"title"`
			Statistics []struct {
				Window string        `json:"window"`
				Series string        `json:"series"`
				Kind   string        `json:"kind"`
				Mean   result.Number `json:"mean"`
				Median result.Number `json:"median"`
				P95    result.Number `json:"p95"`
				P99    result.Number `json:"p99"`
				P999   result.Number `json:"p999"`
				Max    result.Number `json:"max"`
				CV     result.Number `json:"cv"`
			} `json:"statistics"`
		} `json:"results"`
	}
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	out := map[row]numbers{}
	for _, r := range d.Results {
		for _, s := range r.Statistics {
			var n numbers
			for i, v := range []result.Number{s.Mean, s.Median, s.P95, s.P99, s.P999, s.Max, s.CV} {
				n[i] = full(float64(v))
			}
			out[row{r.Title, s.Window, s.Series + "/" + s.Kind}] = n
		}
	}
	return out
}

func readCSV(t *testing.T, run *document.Run) map[row]numbers {
	var b bytes.Buffer
	if err := document.CSV(&b, run); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range records[0] {
		at[name] = i
	}
	out := map[row]numbers{}
	for _, r := range records[1:] {
		if kind := r[at["type"]]; kind == "workload" || kind == "duration" || kind == "recovery" {
			continue
		}
		var n numbers
		for i, name := range []string{"mean", "median", "p95", "p99", "p999", "max", "cv"} {
			n[i] = r[at[name]]
		}
		out[row{r[at["title"]], r[at["window"]], r[at["series"]] + "/" + r[at["kind"]]}] = n
	}
	return out
}

var columns = regexp.MustCompile(`\s{2,}`)

func readTerminal(t *testing.T, run *document.Run) map[row]numbers {
	var b bytes.Buffer
	if err := report.Terminal(&b, run, 250, false); err != nil {
		t.Fatal(err)
	}
	titles := map[string]bool{}
	for _, r := range run.Summary.Results {
		titles[r.Title] = true
	}
	out := map[row]numbers{}
	title, inTable := "", false
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSpace(line)
		if heading, _, found := strings.Cut(line, " ─"); found {
			heading, _, _ = strings.Cut(heading, " (")
			title, inTable = heading, false
			continue
		}
		cells := columns.Split(line, -1)
		switch {
		case cells[0] == "window":
			inTable = true
		case len(cells) != 10:
			inTable = false
		case inTable && titles[title]:
			out[row{title, cells[0], cells[1]}] = numbers(cells[3:])
		}
	}
	return out
}

func readHTML(t *testing.T, run *document.Run) map[row]numbers {
	out := map[row]numbers{}
	for _, figure := range findAll(parseHTML(t, htmlOf(t, run)), "figure") {
		title := text(findAll(figure, "h3")[0])
		for _, body := range findAll(figure, "tbody") {
			window := ""
			for _, tr := range findAll(body, "tr") {
				if th := findAll(tr, "th"); len(th) > 0 {
					window = text(th[0])
				}
				var cells []string
				for _, td := range findAll(tr, "td") {
					cells = append(cells, text(td))
				}
				if len(cells) == 9 {
					out[row{title, window, cells[0]}] = numbers(cells[2:])
				}
			}
		}
	}
	return out
}
