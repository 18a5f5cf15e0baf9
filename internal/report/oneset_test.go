package report_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/result/resulttest"
)

// drawn is what one line of a chart comes to.
type drawn struct {
	count                       int
	low, high, sum, first, last float64
}

func (d *drawn) add(at, v float64) {
	if d.count == 0 {
		*d = drawn{low: v, high: v, first: at}
	}
	d.count++
	d.low, d.high, d.sum, d.last = min(d.low, v), max(d.high, v), d.sum+v, at
}

// TestChartTableAndCSVAreOneSetOfData: the chart of the page, the rows of CSV and its points come to the same of each line:
// lowest, highest, mean, first and last moment, all within the time of the result.
func TestChartTableAndCSVAreOneSetOfData(t *testing.T) {
	p := resulttest.Params{VMs: 3, Duration: 5 * time.Minute}
	dir := filepath.Join(t.TempDir(), "run")
	w, err := result.Create(dir, resulttest.Manifest(p))
	check(t, err)
	check(t, resulttest.Write(w, p))
	check(t, w.Flush())
	bundle, err := result.Open(dir)
	check(t, err)
	defer bundle.Close()
	s, err := evaluate.Run(context.Background(), evaluate.Input{Bundle: bundle, Scenario: benchScenario(), Ended: result.EndedCompleted})
	check(t, err)
	run := &document.Run{Manifest: resulttest.Manifest(p), Summary: s}
	points, onPage := pointsOfCSV(t, run), pointsOfPage(t, run)
	rows := 0
	var b bytes.Buffer
	check(t, document.CSV(&b, run))
	records, err := csv.NewReader(&b).ReadAll()
	check(t, err)
	at := map[string]int{}
	for i, name := range records[0] {
		at[name] = i
	}
	for _, r := range records[1:] {
		value := func(name string) float64 { v, _ := strconv.ParseFloat(r[at[name]], 64); return v }
		key := r[at["result"]] + "/" + r[at["series"]]
		d := points[key]
		if r[at["window"]] != "" || r[at["kind"]] != "" || d == nil {
			continue
		}
		rows++
		if float64(d.count) != value("count") || !alike(d.low, value("min")) || !alike(d.high, value("max")) || !alike(d.sum/float64(d.count), value("mean")) {
			t.Errorf("%s: points %+v, row %v", key, *d, r)
		}
		if d.first < value("from_s") || d.last > value("to_s") {
			t.Errorf("%s: points from %v to %v in a result from %s to %s", key, d.first, d.last, r[at["from_s"]], r[at["to_s"]])
		}
		c := onPage[key]
		if c == nil || c.count != d.count || !alike(c.low, d.low) || !alike(c.high, d.high) || !alike(c.sum, d.sum) ||
			math.Abs(c.first-d.first) > 1e-3 || math.Abs(c.last-d.last) > 1e-3 {
			t.Errorf("%s: the page draws %+v, CSV has %+v", key, c, *d)
		}
	}
	if rows < 5 {
		t.Errorf("only %d lines were compared", rows)
	}
}

// alike allows for the five digits of the page.
func alike(a, b float64) bool { return math.Abs(a-b) <= 1e-4*math.Max(math.Abs(a), math.Abs(b)) }

func pointsOfCSV(t *testing.T, run *document.Run) map[string]*drawn {
	var b bytes.Buffer
	check(t, document.CSVPoints(&b, run))
	records, err := csv.NewReader(&b).ReadAll()
	check(t, err)
	out := map[string]*drawn{}
	for _, r := range records[1:] {
		key := r[1] + "/" + r[3]
		if out[key] == nil {
			out[key] = &drawn{}
		}
		if v, err := strconv.ParseFloat(r[7], 64); err == nil && r[4] == "" {
			seconds, err := strconv.ParseFloat(r[6], 64)
			check(t, err)
			out[key].add(seconds, v)
		}
	}
	return out
}

var pageDataPattern = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

func pointsOfPage(t *testing.T, run *document.Run) map[string]*drawn {
	var data struct {
		Charts []struct {
			ID     string `json:"id"`
			Tables []struct {
				X     []float64 `json:"x"`
				Lines []struct {
					Name string     `json:"name"`
					Y    []*float64 `json:"y"`
				} `json:"lines"`
			} `json:"tables"`
		} `json:"charts"`
	}
	check(t, json.Unmarshal(pageDataPattern.FindSubmatch(htmlOf(t, run))[1], &data))
	out := map[string]*drawn{}
	for _, c := range data.Charts {
		var n int
		if _, err := fmt.Sscanf(c.ID, "result-%d", &n); err != nil {
			continue
		}
		for _, table := range c.Tables {
			for _, l := range table.Lines {
				d := &drawn{}
				for i, v := range l.Y {
					if v != nil {
						d.add(table.X[i], *v)
					}
				}
				out[run.Summary.Results[n-1].Name+"/"+l.Name] = d
			}
		}
	}
	return out
}
