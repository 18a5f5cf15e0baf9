package document

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// Headline is one of the few numbers that answer what a run was made for: a statistic of one result in each stretch between its
// events.
type Headline struct {
	Result    string         `json:"result"` // name
	Title     string         `json:"title"`
	Statistic string         `json:"statistic"` // "mean", "median", "p99"
	Kind      string         `json:"kind,omitempty"`
	Unit      string         `json:"unit"`
	Parts     []HeadlinePart `json:"parts"` // the first is the baseline of the others
}

// HeadlinePart is the value in one window.
type HeadlinePart struct {
	Window string        `json:"window"` // "" is the whole result
	Label  string        `json:"label"`  // "baseline", "after nodes.PowerOff 0"; empty if there is only one part
	Value  result.Number `json:"value"`
	// Bounds are the 95 % bounds of Value from the variation within the run; null where there are none.
	Bounds *[2]result.Number `json:"bounds"`
	// AtLeast: Value is a lower bound of the real value.
	AtLeast bool          `json:"at_least,omitempty"`
	Change  result.Number `json:"change"` // from the baseline, a ratio: -0.26; null for the baseline, and of bounds
	// Noise: the change is within what the bounds of both numbers leave open.
	Noise bool `json:"within_noise,omitempty"`
	// NoiseUnknown: one of both has no bounds, so that chance may be all of the change.
	NoiseUnknown bool `json:"noise_unknown,omitempty"`
	// LivedOn is the change of the VMs that the event before the window did not take away; null if it took none.
	LivedOn result.Number `json:"lived_on_change"`
	// Gone counts the VMs that events took away from this window's sum.
	Gone int `json:"vms_gone,omitempty"`
	// Of counts all VMs of the sum; 0 if none is gone.
	Of int `json:"vms_of,omitempty"`
}

const (
	headlinesMax = 6
	partsMax     = 4
)

// headlines picks the numbers in the order of the scenario's results: the mean of rates, the median and the 99th percentile of
// latency. Results of loads whose stages are shown, results of many series, counters of the platform, and errors that did not happen are left to the tables.
func headlines(d *Document) []Headline {
	list := []Headline{}
	for i := range d.Results {
		r := &d.Results[i]
		names := []string{"mean"}
		kind := ""
		switch {
		case d.staged(r) || r.Unasked || r.Missing != "" || r.Type == "active" || r.Type == "metric" || r.Type == "errors" && !failed(r):
			continue
		case r.Type == "latency":
			kind, names = latencyKind(r), []string{"median", "p99"}
		}
		for _, name := range names {
			h := Headline{Result: r.Name, Title: r.Heading(), Statistic: name, Kind: kind, Unit: r.Unit, Parts: parts(d, r, kind, name)}
			if len(h.Parts) > 0 && len(list) < headlinesMax {
				list = append(list, h)
			}
		}
	}
	named(d, list)
	oneBaseline(d, list)
	fewest(d, list)
	return list
}

// named tells results of the same title apart.
func named(d *Document, list []Headline) {
	of := map[string]string{} // title → the first result that has it
	twice := map[string]bool{}
	for i := range d.Results {
		r := &d.Results[i]
		if first, known := of[r.Heading()]; known && first != r.Name {
			twice[r.Heading()] = true
		} else {
			of[r.Heading()] = r.Name
		}
	}
	for i := range list {
		if h := &list[i]; twice[h.Title] && h.Title != h.Result {
			h.Title += " (" + h.Result + ")"
		}
	}
}

// oneBaseline leaves changes to the results with data in the first window that any of them has data in: "baseline" is one stretch of
// time. The windows of all others are called by what they are.
func oneBaseline(d *Document, list []Headline) {
	at := func(p *HeadlinePart) int {
		return slices.IndexFunc(d.Windows, func(w result.Window) bool { return w.Name == p.Window })
	}
	first := math.MaxInt
	for i := range list {
		if parts := list[i].Parts; len(parts) > 1 {
			first = min(first, at(&parts[0]))
		}
	}
	for i := range list {
		parts := list[i].Parts
		if len(parts) < 2 || at(&parts[0]) == first {
			continue
		}
		parts[0].Label = d.roleOf(parts[0].Window)
		for k := range parts {
			parts[k].Change, parts[k].Noise, parts[k].NoiseUnknown = result.Number(math.NaN()), false, false
		}
	}
}

func failed(r *Result) bool {
	return slices.ContainsFunc(r.Rows, func(s Statistic) bool { return s.Window == "" && s.Max > 0 })
}

// latencyKind is response time where it is recorded: what a user of the storage sees.
func latencyKind(r *Result) string {
	for i := range r.Rows {
		if r.Rows[i].Kind == "response" {
			return "response"
		}
	}
	return "service"
}

// parts are the values of the windows in which the result has data, or the value of the whole result if that is all in one.
func parts(d *Document, r *Result, kind, name string) []HeadlinePart {
	var list []HeadlinePart
	for _, w := range append([]result.Window{{}}, d.Windows...) {
		row, ok := onlyRow(r, w.Name, kind)
		if !ok {
			return nil
		}
		value := result.Number(math.NaN())
		if row != nil {
			value, _ = row.Distribution.Statistic(name)
		}
		if math.IsNaN(float64(value)) {
			// A window without data says nothing, unless an event took away all that could have made some.
			if vms, of := gone(d, r, &w); vms > 0 && vms >= of && len(list) > 1 {
				none := result.Number(math.NaN())
				list = append(list, HeadlinePart{Window: w.Name, Label: windowRole(&w), Value: none, Change: none, LivedOn: none, Gone: vms, Of: of})
			}
			continue
		}
		p := HeadlinePart{Window: w.Name, Label: windowRole(&w), Value: value, AtLeast: row.AtLeast.Has(name), Bounds: boundsOf(row, name),
			Change: result.Number(math.NaN())}
		p.LivedOn = livedOn(d, r, &w)
		p.Gone, p.Of = gone(d, r, &w)
		list = append(list, p)
	}
	if len(list) <= 2 { // the whole, which is also the only window with data
		if len(list) == 2 {
			list[0].Window = list[1].Window
		}
		return list[:min(1, len(list))]
	}
	list = list[1:]
	list[0].Label = "baseline"
	for i := range list[1:] {
		if p := &list[i+1]; !p.AtLeast && !list[0].AtLeast && list[0].Value > 0 && p.Value >= 0 && !math.IsInf(float64(list[0].Value+p.Value), 0) {
			p.Change = p.Value/list[0].Value - 1
			own, base := halfWidth(p), halfWidth(&list[0])
			p.NoiseUnknown = math.IsNaN(own + base)
			// What varies far more than the baseline changed, even if its mean did not.
			p.Noise = own <= unevenFactor*max(base, unevenMin) && math.Abs(math.Log(float64(p.Value/list[0].Value))) < math.Hypot(own, base)
		}
	}
	return list
}

// The interval of a window may be this much wider than that of the baseline before its variation is an effect by itself, and not the
// noise in which a change hides; intervals below unevenMin are narrow anyway.
const (
	unevenFactor = 3
	unevenMin    = 0.005
)

// halfWidth is half of the interval of a part on a logarithmic scale; NaN, which no change is below, if it has none.
func halfWidth(p *HeadlinePart) float64 {
	if p.Bounds == nil || p.Bounds[0] <= 0 {
		return math.NaN()
	}
	return math.Log(float64(p.Bounds[1]/p.Bounds[0])) / 2
}

// windowMin is the length below which a window holds only one or two whole seconds, such as the start of a load that goes on: its
// number is left to the tables, as long as there are others.
const windowMin = 3 * time.Second

// fewest leaves the same few windows in all numbers: the baselines, the last one, those in which a number begins, and those with the
// largest changes.
func fewest(d *Document, list []Headline) {
	largest := map[string]float64{} // change by label
	var labels []string
	begins, brief := map[string]int64{}, map[string]bool{}
	for i := range list {
		parts := list[i].Parts
		for k := 1; k < len(parts); k++ {
			p := &parts[k]
			if _, known := largest[p.Label]; !known {
				labels = append(labels, p.Label)
			}
			largest[p.Label] = max(largest[p.Label], change(p))
			if w := d.windowOf(p.Window); w != nil {
				begins[p.Label] = w.FromNanos
				brief[p.Label] = w.ToNanos-w.FromNanos < int64(windowMin) && p.Gone == 0
			}
		}
	}
	if slices.ContainsFunc(labels, func(l string) bool { return !brief[l] }) {
		labels = slices.DeleteFunc(labels, func(l string) bool { return brief[l] })
	}
	if len(labels) == 0 {
		return
	}
	last := slices.MaxFunc(labels, func(a, b string) int { return cmp.Compare(begins[a], begins[b]) })
	slices.SortStableFunc(labels, func(a, b string) int { return cmp.Compare(largest[b], largest[a]) })
	keep := []string{last}
	for _, l := range firstWindows(d, list) {
		if _, known := largest[l]; known && l != last {
			keep = append(keep, l)
		}
	}
	for _, l := range labels {
		if len(keep) < partsMax-1 && !slices.Contains(keep, l) {
			keep = append(keep, l)
		}
	}
	for i := range list {
		if parts := list[i].Parts; len(parts) > 1 {
			list[i].Parts = slices.DeleteFunc(parts, func(p HeadlinePart) bool {
				return p.Window != parts[0].Window && !slices.Contains(keep, p.Label)
			})
		}
	}
}

// firstWindows are the windows, other than the baseline, in which some number begins. The table has columns of them in any case, and
// a gap there would read as if the other results had no data.
func firstWindows(d *Document, list []Headline) (labels []string) {
	for i := range list {
		first := &list[i].Parts[0]
		label := first.Label
		if len(list[i].Parts) == 1 {
			label = d.roleOf(first.Window)
		}
		if label != "baseline" && label != wholeLabel && !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	return labels
}

func (d *Document) windowOf(name string) *result.Window {
	i := slices.IndexFunc(d.Windows, func(w result.Window) bool { return w.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Windows[i]
}

// change is how far a part is from the baseline: a half is as far as a double.
func change(p *HeadlinePart) float64 {
	if p.AtLeast || math.IsNaN(float64(p.Value)) {
		return math.Inf(1)
	}
	if math.IsNaN(float64(p.Change)) {
		return 0
	}
	return math.Abs(math.Log(max(1e-9, 1+float64(p.Change))))
}

// onlyRow returns the row of a window; ok is false if several series have one.
func onlyRow(r *Result, window, kind string) (row *Statistic, ok bool) {
	for i := range r.Rows {
		s := &r.Rows[i]
		if s.Window != window || s.Kind != kind || s.Count == 0 {
			continue
		}
		if row != nil {
			return nil, false
		}
		row = s
	}
	return row, true
}

// boundsOf returns the bounds of a statistic that is exact and has both.
func boundsOf(s *Statistic, name string) *[2]result.Number {
	b := s.MeanBounds
	if s.Bounds != nil {
		b = map[string]*[2]result.Number{"median": &s.Bounds.Median, "p99": &s.Bounds.P99}[name]
	}
	if b == nil || s.AtLeast.Has(name) || math.IsNaN(float64(b[0]+b[1])) || math.IsInf(float64(b[1]), 1) {
		return nil
	}
	return b
}

// windowRole names a window by the event that it follows.
func windowRole(w *result.Window) string {
	switch {
	case len(w.Name) > 7 && w.Name[:7] == "during ":
		return w.Name
	case w.Before != "":
		return "after " + w.Before
	}
	return w.Name
}

// Name is the number's name: "OLTP latency, p99 response time".
func (h *Headline) Name() string {
	if h.Kind != "" {
		return fmt.Sprintf("%s, %s %s time", h.Title, h.Statistic, h.Kind)
	}
	return cmp.Or(h.Title, h.Result) + ", " + h.Statistic
}

// ValueText is the value of a part with its unit.
func (h *Headline) ValueText(p HeadlinePart) string {
	text := draw.Quantity(float64(p.Value), h.Unit)
	if math.IsNaN(float64(p.Value)) && p.Gone > 0 {
		return fmt.Sprintf("no I/O: %d of %d VMs taken away", p.Gone, p.Of)
	}
	if p.AtLeast {
		text = "≥ " + text
	}
	return text
}

// boundsTextMin is how far a bound lies from its number, relative to it, before it is worth a place beside it.
const boundsTextMin = 0.01

// BoundsText is the 95 % interval of a part: "7.1 to 52 ms"; empty if there is none, or it is narrower than one percent.
func (h *Headline) BoundsText(p HeadlinePart) string {
	if p.Bounds == nil || p.Value == 0 {
		return ""
	}
	low, high := float64(p.Bounds[0]), float64(p.Bounds[1])
	if max(1-low/float64(p.Value), high/float64(p.Value)-1) < boundsTextMin {
		return ""
	}
	from, to := draw.Quantity(low, h.Unit), draw.Quantity(high, h.Unit)
	number, unitName, found := strings.Cut(from, " ")
	if found && strings.HasSuffix(to, " "+unitName) {
		from = number
	}
	return from + " to " + to
}

// ChangeText is the change from the baseline: "−26 %", "3.2×"; empty if unknown.
func (p HeadlinePart) ChangeText() string {
	text := changeText(float64(p.Change))
	if text != "" && p.Noise {
		text += ", within noise"
	}
	if lived := changeText(float64(p.LivedOn)); text != "" && lived != "" {
		text += "; lived on " + lived
	} else if text != "" && p.Gone > 0 {
		text += fmt.Sprintf("; %d of %d VMs taken away", p.Gone, p.Of)
	}
	return text
}

func changeText(change float64) string {
	switch {
	case math.IsNaN(change):
		return ""
	case change >= 1:
		return draw.Amount(1+change, "") + "×"
	}
	return signed(change)
}

// signed prints a ratio in percent with its sign.
func signed(ratio float64) string {
	if ratio < 0 {
		return "−" + unit.FormatPercent(-ratio)
	}
	return "+" + unit.FormatPercent(ratio)
}

// wholeLabel heads the column of numbers without windows.
const wholeLabel = "whole result"

// HeadlineTable has a row for each number and a column for each window, in the order of time. Columns after the baseline include
// the change from it.
func HeadlineTable(d *Document) draw.Table {
	column := func(h *Headline, p HeadlinePart) string { return cmp.Or(p.Label, wholeLabel) }
	if slices.ContainsFunc(d.Headlines, func(h Headline) bool { return len(h.Parts) > 1 }) {
		// A result that is all in one window has its number there.
		column = func(h *Headline, p HeadlinePart) string { return cmp.Or(p.Label, d.roleOf(p.Window)) }
	}
	at := map[string]int{} // column → when its window begins
	for i := range d.Headlines {
		for _, p := range d.Headlines[i].Parts {
			at[column(&d.Headlines[i], p)] = slices.IndexFunc(d.Windows, func(w result.Window) bool { return w.Name == p.Window })
		}
	}
	columns := slices.SortedFunc(maps.Keys(at), func(a, b string) int { return cmp.Or(cmp.Compare(at[a], at[b]), cmp.Compare(a, b)) })
	t := draw.Table{Heads: append([]string{"number"}, columns...), Left: 1}
	for i := range d.Headlines {
		h := &d.Headlines[i]
		cells := make([]string, len(t.Heads))
		cells[0] = h.Name()
		for _, p := range h.Parts {
			text := h.ValueText(p)
			if change := p.ChangeText(); change != "" {
				text += " (" + change + ")"
				if p.NoiseUnknown {
					text += "*"
				}
			} else if bounds := h.BoundsText(p); bounds != "" {
				text += " (" + bounds + ")"
			}
			cells[slices.Index(t.Heads, column(h, p))] = text
		}
		t.Add(cells...)
	}
	return t
}

// HeadlineNote explains the mark of the changes that have one; empty if none has.
func HeadlineNote(d *Document) string {
	for i := range d.Headlines {
		if slices.ContainsFunc(d.Headlines[i].Parts, func(p HeadlinePart) bool { return p.NoiseUnknown && p.ChangeText() != "" }) {
			return "* without interval: too little was measured to tell this change from chance"
		}
	}
	return ""
}

// roleOf names a window as headlines do.
func (d *Document) roleOf(window string) string {
	if w := d.windowOf(window); w != nil {
		return windowRole(w)
	}
	return wholeLabel
}

// Lead is the index of the result whose chart answers first: one that missed its threshold, or else the first with data. It is -1 if
// there is none.
func (d *Document) Lead() int {
	shown := func(r *Result) bool { return !r.Unasked && r.Missing == "" && len(r.Series) > 0 }
	for _, wanted := range []func(r *Result) bool{missed, func(r *Result) bool { return r.Type != "active" && r.Type != "errors" }} {
		for i := range d.Results {
			if r := &d.Results[i]; shown(r) && wanted(r) {
				return i
			}
		}
	}
	return -1
}

func missed(r *Result) bool {
	return slices.ContainsFunc(r.Checks, func(c result.Check) bool { return !c.Passed && c.Reason == "" })
}
