package compare

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// TrendFormat is the version of the JSON of a trend.
const TrendFormat = 1

// Trend is one number of all comparable runs of a scenario over time.
type Trend struct {
	Format   int    `json:"trend_format"`
	Headline string `json:"headline"`
	Scenario string `json:"scenario"`
	Number   string `json:"number"`
	Unit     string `json:"unit"`
	// Rehearsal: all runs are scaled down.
	Rehearsal bool     `json:"rehearsal"`
	Points    []Point  `json:"runs"`   // the oldest first
	Levels    []Level  `json:"levels"` // between changes, in order
	LeftOut   []string `json:"left_out"`
	Gate      *Gate    `json:"gate"` // the runs since the last change against a baseline; null without one
	// Baseline is the level of the pinned runs; null if none of them is among the runs.
	Baseline *TrendBaseline `json:"baseline"`
}

// TrendBaseline is the level of the pinned runs, and the band in which a further one is with 95 %; null for fewer than three.
type TrendBaseline struct {
	Runs []string      `json:"runs"`
	Mean result.Number `json:"mean"`
	Low  result.Number `json:"low"`
	High result.Number `json:"high"`
}

// Point is the number of one run.
type Point struct {
	Run     string        `json:"run"`
	Label   string        `json:"label"`
	Created time.Time     `json:"created"`
	Value   result.Number `json:"value"`
	Level   int           `json:"level"`   // index of Levels
	Outside bool          `json:"outside"` // of the band of its level
	Pinned  bool          `json:"pinned"`  // a run of the baseline
}

// Level is a stretch of runs without a change.
type Level struct {
	From int           `json:"from"` // index of its first run
	Runs int           `json:"runs"`
	Mean result.Number `json:"mean"`
	// A further run of this level is in the band from Low to High with 95 %; null for fewer than three runs.
	Low     result.Number `json:"low"`
	High    result.Number `json:"high"`
	Change  result.Number `json:"change"`  // relative to the level before; null for the first
	Factors []string      `json:"factors"` // that differ between its first run and the run before
}

// OfHistory returns the trend of a number over runs, the oldest first; text selects it as in a condition without a limit ("p99", `p99 of
// "Read Latency"`), and is empty for the first number that a comparison judges. Runs that cannot be compared with the newest are left out.
// Pinned are the ids of those of the baseline.
func OfHistory(runs []*document.Run, text string, pinned []string) (*Trend, error) {
	var of Condition
	if text != "" {
		var err error
		if of, err = parseNumber(text); err != nil {
			return nil, err
		}
	}
	t := &Trend{Format: TrendFormat, Points: []Point{}, Levels: []Level{}, LeftOut: []string{}}
	runs = t.comparable(runs)
	if len(runs) == 0 {
		return nil, &diag.Error{Code: "no-history", Exit: diag.ExitUsage, Message: "no completed run of this scenario", Hint: "bragg runs list shows all runs"}
	}
	c, documents, err := build(runs, make([]string, len(runs)), Options{})
	if err != nil {
		return nil, err
	}
	s := &Sets{Base: len(runs)}
	s.measured = measure(c, s)
	chosen := s.choose(c)
	if text != "" {
		chosen = s.pick(func(n *Number) bool { return c.matches(&of, n) })
	}
	if len(chosen) == 0 {
		return nil, &diag.Error{Code: "no-number", Exit: diag.ExitUsage, Message: fmt.Sprintf("no run has the number %q", text),
			Hint: "numbers are iops, bandwidth, completion, and mean, median, p95, p99, p99.9 of latency"}
	}
	n := &chosen[0]
	if len(chosen) > 1 && text != "" {
		t.LeftOut = append(t.LeftOut, fmt.Sprintf("%d results have this number; this is the first. Name one: %s of %q.", len(chosen), of.metric, n.Title))
	}
	t.Rehearsal = documents[0].Rehearsal != nil
	t.Scenario, t.Number, t.Unit = documents[0].Scenario.Name, n.Label()+n.when(), n.Unit
	if t.fill(n, documents); len(t.Levels) == 0 {
		return nil, &diag.Error{Code: "no-number", Exit: diag.ExitUsage, Message: fmt.Sprintf("%s is 0 in all runs", t.Number), Hint: "choose another with --number"}
	}
	t.pin(pinned)
	t.Headline = t.headline()
	return t, nil
}

// parseNumber reads the name of a number of results, as in a condition. Costs of events are refused: a run may have many events of one
// name, or none, so they are compared between runs and not drawn over time.
func parseNumber(text string) (Condition, error) {
	const known = "numbers are iops, bandwidth, completion, and mean, median, p95, p99, p99.9 of latency"
	refuse := func(message, hint string) (Condition, error) {
		return Condition{}, &diag.Error{Code: "trend-number", Exit: diag.ExitUsage, Message: message, Hint: hint}
	}
	m := conditionText.FindStringSubmatch(text + " > 0")
	if m == nil || m[5] != "0" { // more than a 0 is a limit in the text itself
		return refuse(fmt.Sprintf("number %q is not of the form NUMBER, NUMBER of \"RESULT\" or NUMBER of \"RESULT\" in \"WINDOW\"", text), known)
	}
	name := strings.ToLower(m[1])
	if _, ofEvent := costUnit(name); ofEvent {
		return refuse(fmt.Sprintf("%s is a cost of events, and a trend shows numbers of results", name),
			known+"; compare costs of events with bragg compare --fail-on")
	}
	if _, ofResults := gateMetrics[name]; !ofResults {
		return refuse(fmt.Sprintf("unknown number %q", m[1]), known)
	}
	return ParseCondition(text + " > 0%")
}

// pin sets the baseline from the runs that are pinned.
func (t *Trend) pin(pinned []string) {
	var values []float64
	b := &TrendBaseline{}
	for i := range t.Points {
		if p := &t.Points[i]; slices.Contains(pinned, p.Run) {
			p.Pinned, b.Runs, values = true, append(b.Runs, p.Run), append(values, float64(p.Value))
		}
	}
	if missing := len(pinned) - len(values); missing > 0 {
		t.LeftOut = append(t.LeftOut, fmt.Sprintf("%s of the pinned baseline cannot be compared with the newest run.", textio.Plural(missing, "run")))
	}
	if len(values) > 0 {
		mean, low, high := stat.Band(values)
		b.Mean, b.Low, b.High = result.Number(mean), result.Number(low), result.Number(high)
		t.Baseline = b
	}
}

// comparable drops runs that cannot be compared with the newest, and counts them by reason.
func (t *Trend) comparable(runs []*document.Run) []*document.Run {
	if len(runs) == 0 {
		return nil
	}
	newest := document.Build(runs[len(runs)-1])
	var kept []*document.Run
	dropped := map[string]int{}
	for _, run := range runs {
		d := document.Build(run)
		switch {
		case run.Going > 0 || d.Ended != result.EndedCompleted:
			dropped["did not complete"]++
		case d.Validity == result.Invalid:
			dropped["are INVALID"]++
		case d.Scenario.Hash != newest.Scenario.Hash:
			dropped["have another text or other variables of the scenario than the newest"]++
		case fmt.Sprint(rehearsalFactors(d)) != fmt.Sprint(rehearsalFactors(newest)):
			dropped["are rehearsals of another size, or none"]++
		case d.Target.Simulated != newest.Target.Simulated:
			dropped["differ in whether the target is simulated"]++
		default:
			kept = append(kept, run)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(dropped)) {
		t.LeftOut = append(t.LeftOut, fmt.Sprintf("%s left out: they %s.", textio.Plural(dropped[reason], "run"), reason))
	}
	return kept
}

// fill sets points and levels from the values of a number.
func (t *Trend) fill(n *Number, documents []*document.Document) {
	var values []float64
	var of []*document.Document
	missing := 0
	for i, v := range n.Base {
		if !(v > 0) {
			missing++
			continue
		}
		values, of = append(values, float64(v)), append(of, documents[i])
		t.Points = append(t.Points, Point{Run: documents[i].Run, Label: documents[i].Label, Created: documents[i].Created, Value: v})
	}
	if missing > 0 {
		t.LeftOut = append(t.LeftOut, fmt.Sprintf("%s left out: they do not have the number.", textio.Plural(missing, "run")))
	}
	bounds := append(append([]int{0}, stat.Changes(values)...), len(values))
	for i := range len(bounds) - 1 {
		from, to := bounds[i], bounds[i+1]
		if from == to {
			continue
		}
		mean, low, high := stat.Band(values[from:to])
		level := Level{From: from, Runs: to - from, Mean: result.Number(mean), Low: result.Number(low), High: result.Number(high), Change: unknown,
			Factors: []string{}}
		if i > 0 {
			level.Change = level.Mean/t.Levels[i-1].Mean - 1
			for _, f := range factors([]*document.Document{of[from-1], of[from]}) {
				if !slices.Contains(harmless, f.Name) {
					level.Factors = append(level.Factors, fmt.Sprintf("%s: %s → %s", f.Name, cmp.Or(f.Values[0], "–"), cmp.Or(f.Values[1], "–")))
				}
			}
		}
		t.Levels = append(t.Levels, level)
		for j := from; j < to; j++ {
			t.Points[j].Level, t.Points[j].Outside = i, values[j] < low || values[j] > high
		}
	}
}

// headline answers whether the number changed, and when.
func (t *Trend) headline() string {
	n := len(t.Points)
	last := &t.Levels[len(t.Levels)-1]
	band := ""
	if !math.IsNaN(float64(last.Low)) {
		low, high := draw.Quantity(float64(last.Low), t.Unit), draw.Quantity(float64(last.High), t.Unit)
		band = fmt.Sprintf(" The next run is expected between %s and %s (95 %%).", low, high)
		if low == high {
			band = fmt.Sprintf(" The next run is expected at about %s (95 %%).", low)
		}
	}
	switch {
	case len(t.Levels) > 1:
		text := fmt.Sprintf("%s changed", t.Number)
		if more := len(t.Levels) - 2; more > 0 {
			text += fmt.Sprintf(" %d times, last", more+1)
		}
		first := t.Points[last.From]
		text += fmt.Sprintf(" by %s with run %s of %s", signedChange(1+float64(last.Change)), first.Run, first.Created.UTC().Format("2006-01-02"))
		if len(last.Factors) > 0 {
			text += ", whose " + last.Factors[0]
		}
		return text + "." + band
	case n < stat.ChangeValuesMin:
		return fmt.Sprintf("Too few runs to find a change of %s: %d of %d.%s", t.Number, n, stat.ChangeValuesMin, band)
	}
	return fmt.Sprintf("No change of %s in %d runs, whose spread is %s.%s", t.Number, n, unit.FormatPercent(t.spread()), band)
}

// spread is the relative standard deviation of all runs of a trend without a change.
func (t *Trend) spread() float64 {
	mean, squares := math.Log(float64(t.Levels[0].Mean)), 0.0
	for _, p := range t.Points {
		d := math.Log(float64(p.Value)) - mean
		squares += d * d
	}
	return math.Sqrt(squares / float64(max(len(t.Points)-1, 1)))
}

// JSON writes the trend for programs.
func (t *Trend) JSON(w io.Writer) error {
	if err := document.WriteJSON(w, t); err != nil {
		return fmt.Errorf("write trend as json: %w", err)
	}
	return nil
}
