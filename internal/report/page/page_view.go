package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// LongRows is how many rows of statistics the page shows without expanding.
	LongRows = 48
	// ManySeries is how many lines a legend shows without scrolling.
	ManySeries = 12
)

// pageView is the input of the report template.
type pageView struct {
	Shell
	Doc         *document.Document
	Description template.HTML
	Timeline    *timelineView
	Costs       []document.Impact // of the first screen
	MoreCosts   int
	Lead        *figureView  // the chart that answers first, without its table
	Overlays    []figureView // charts that several results share, except the Lead
	Figures     []figureView
	Scaling     []figureView // the first is the Lead
	Stages      []figureView // without the Lead
	Durations   *figureView
	Plan        planView
}

// figureView is one result as the page shows it.
type figureView struct {
	ID        string
	Result    *document.Result
	Label     string // for screen readers
	Caption   string // of the table
	Drawn     bool
	Part      string // "chart" or "table" of a figure that is shown in two places; "" is all of it
	Log       bool   // has a logarithmic scale as an option
	LogFirst  bool   // its range needs one
	Long      bool
	Many      bool
	Alone     bool // a single line, without a legend
	Reduced   bool
	Rehearsal bool
	Windows   []windowView
	LeftOut   string // which rows of statistics are not on the page
}

// windowView has the rows of one window.
type windowView struct{ Rows []*document.Statistic }

// PageData is the data for the page's script.
type PageData struct {
	Charts []Chart    `json:"charts"`
	Marks  []PageMark `json:"marks"`
	// Windows are the stretches between events, in seconds: every other one is shaded.
	Windows [][2]float64 `json:"windows,omitempty"`
}

type PageMark struct {
	Number int     `json:"number"`
	At     float64 `json:"at"`
	Label  string  `json:"label"`
	Kind   string  `json:"kind"`
	Failed bool    `json:"failed,omitempty"`
	Flag   string  `json:"flag,omitempty"`  // instead of the number
	Run    *int    `json:"run,omitempty"`   // index of the run that gives the colour
	Quiet  bool    `json:"quiet,omitempty"` // a line without a label
}

func newPageView(run *document.Run) (*pageView, error) {
	d := Readable(document.Build(run))
	v := &pageView{
		Doc: d, Timeline: newTimeline(d), Plan: newPlanView(run.Plan),
		// The sanitizer wrote every byte of it.
		Description: template.HTML(sanitizeDescription(run.Manifest.Scenario.Description)),
	}
	v.Costs, v.MoreCosts = document.CostsShown(d)
	var data PageData
	lead := d.Lead()
	if figures, charts := newScalingFigures(d); len(figures) > 0 {
		v.Lead, v.Scaling, lead = &figures[0], figures, -1
		data.Charts = append(data.Charts, charts...)
	}
	stages, curves := newStageFigures(d)
	v.Stages, data.Charts = stages, append(data.Charts, curves...)
	if len(stages) > 0 && lead >= 0 {
		v.Lead, v.Stages, lead = &stages[0], stages[1:], -1
	}
	for _, o := range newOverlays(d) {
		data.Charts = append(data.Charts, o.chart)
		if lead >= 0 && o.name == d.Results[lead].Overlay {
			v.Lead, lead = &o.figureView, -1
		} else {
			v.Overlays = append(v.Overlays, o.figureView)
		}
	}
	for i := range d.Results {
		f, c := newFigure(d, i)
		v.Figures = append(v.Figures, f)
		if !f.Drawn {
			continue
		}
		data.Charts = append(data.Charts, c)
		if i == lead {
			leading := f
			leading.Part, v.Figures[i].Part, v.Lead = "chart", "table", &leading
		}
	}
	for _, w := range d.Windows {
		data.Windows = append(data.Windows, [2]float64{float64(w.FromNanos) / 1e9, float64(w.ToNanos) / 1e9})
	}
	if f, c := newDurationsFigure(d); f != nil {
		v.Durations = f
		if f.Drawn {
			data.Charts = append(data.Charts, c)
		}
	}
	for _, m := range d.Marks {
		data.Marks = append(data.Marks, PageMark{Number: m.Number, At: float64(m.AtNanos) / 1e9, Label: m.Label, Kind: m.Kind,
			Failed: m.Failed})
	}
	var err error
	v.Shell, err = NewShell(document.DisplayName(d)+" · "+d.Headline(), d.Rehearsal != nil, data)
	return v, err
}

func newFigure(d *document.Document, index int) (figureView, Chart) {
	r := &d.Results[index]
	f := figureView{ID: fmt.Sprintf("result-%d", index+1), Result: r, Rehearsal: d.Rehearsal != nil, Log: r.Type == "latency",
		Long: len(r.Rows) > LongRows, Many: len(r.Series) > ManySeries, Caption: "Statistics by window"}
	if base, _ := draw.BaseUnit(r.Unit); base != "" && !draw.OwnsPrefix(base) {
		f.Caption += ", in " + base
	}
	f.Windows, f.LeftOut = windowsOf(r.Rows)
	from, to := r.Extent()
	f.Alone = len(r.Series) == 1 && r.Series[0].Name == "all" && r.Series[0].Kind == ""
	// A little more on both sides shows the events that bound the window.
	margin := (to - from) * 0.015
	from, to = max(0, from-margin), to+margin
	c := Chart{ID: f.ID, Title: r.Heading(), Unit: r.Unit, From: from, To: to, Expected: r.Expected, Full: r.Full, Spread: spreads(r),
		Lanes: inLanes(r), Log: f.Log && needsLog(r.Series)}
	f.LogFirst = c.Log
	for _, b := range r.Bands {
		c.Bands = append(c.Bands, chartBand{Name: b.Name, Lower: result.Number(b.Lower), Upper: result.Number(b.Upper)})
	}
	lines, reducedBefore := plottedLines(r.Series)
	c.Tables, f.Reduced = Tables(lines, from, to)
	f.Reduced = f.Reduced || reducedBefore
	f.Drawn = len(lines) > 0 && to > from
	if !f.Drawn && f.LeftOut == noStatistics {
		f.LeftOut = "" // the figure says that there is nothing
	}
	f.Label = chartLabel(r, from, to)
	return f, c
}

// logRange is how many times its middle value a latency reaches before a linear axis would hide all but the peak.
const logRange = 30

// needsLog reports whether the lines of means range so far.
func needsLog(series []result.Series) bool {
	for i := range series {
		var values []float64
		for _, p := range series[i].Points {
			if p.Value > 0 {
				values = append(values, p.Value)
			}
		}
		slices.Sort(values)
		if n := len(values); n > 0 && values[n-1] > logRange*values[n/2] {
			return true
		}
	}
	return false
}

// plottedLines gives lines of one series and kind one colour. Dashes distinguish service from response time, and means from
// percentiles, also without colours.
func plottedLines(series []result.Series) (lines []Plotted, reduced bool) {
	colors, statistics := map[string]int{}, map[string]int{}
	for i := range series {
		s := &series[i]
		if len(s.Points) == 0 {
			continue
		}
		key := s.Name + "\x00" + s.Kind
		if _, known := colors[key]; !known {
			colors[key] = len(colors) % ColorsMax
		}
		if _, known := statistics[s.Statistic]; !known {
			statistics[s.Statistic] = min(len(statistics), 1)
		}
		dash := 2 * statistics[s.Statistic]
		if s.Kind == "response" {
			dash++
		}
		reduced = reduced || s.ReducedFrom > 0
		lines = append(lines, Plotted{Points: s.Points, ChartLine: ChartLine{Name: document.LineLabel(s), Color: colors[key],
			Dash: dash, Order: i, Kind: s.Kind, Statistic: s.Statistic, Pieces: piecesOf(s)}})
	}
	return lines, reduced
}

func piecesOf(s *result.Series) [][2]float64 {
	var list [][2]float64
	for _, p := range s.Pieces {
		list = append(list, [2]float64{p.FromSeconds, p.ToSeconds})
	}
	return list
}

// spreadMin is the number of VMs from which they are drawn as a band of lowest, median and highest; single VMs are shown on
// demand.
const spreadMin = 9

// spreads reports whether a result has enough lines of one kind for a band. Activity, which is 0 or 1, has no band.
func spreads(r *document.Result) bool {
	names := map[string]bool{}
	for i := range r.Series {
		if name := r.Series[i].Name; len(r.Series[i].Points) > 0 && !strings.HasSuffix(name, ", lowest") {
			names[name] = true
		}
	}
	return len(names) >= spreadMin && r.Type != "active" && (!r.Unasked || len(names) == len(r.Series))
}

// chartLabel describes a chart in words.
func chartLabel(r *document.Result, from, to float64) string {
	kind, parts := "Line chart", "lines"
	if inLanes(r) {
		kind, parts = "Chart", "lanes, one for each VM, filled during I/O"
	}
	text := fmt.Sprintf("%s of %s from %s to %s with %d %s.", kind, r.Heading(), unit.FormatClock(int64(from*1e9)), unit.FormatClock(int64(to*1e9)),
		len(r.Series), parts)
	if len(r.Rows) > 0 && r.Rows[0].Window == "" {
		s := &r.Rows[0]
		text += fmt.Sprintf(" %s: mean %s, highest %s.", document.SeriesLabel(s.Series, s.Kind), draw.Quantity(float64(s.Mean), r.Unit),
			draw.Quantity(float64(s.Max), r.Unit))
	}
	return text + " Arrow keys move the cursor, plus and minus zoom. The table below has the statistics."
}

// planView is what the page shows of plan.json in addition to its steps.
type planView struct {
	Groups *draw.Table
	Loads  *draw.Table
	Text   string
}

func newPlanView(raw json.RawMessage) planView {
	p, _ := document.ReadPlan(raw) // the document has a caveat
	v := planView{}
	if len(p.Groups) > 0 {
		v.Groups = &draw.Table{Heads: []string{"group", "template", "VMs", "vCPUs", "memory", "disks", "data touched per VM"}, Left: 2}
		for _, g := range p.Groups {
			vms := fmt.Sprint(g.Count)
			if g.CountFinal != g.Count {
				vms = fmt.Sprintf("%d, then up to %d", g.Count, g.CountFinal)
			}
			disks := "–"
			if len(g.Disks) > 0 {
				disks = fmt.Sprintf("%d × %s", len(g.Disks), unit.FormatBytes(g.Disks[0].SizeBytes))
			}
			v.Groups.Add(draw.Clean(g.Name), draw.Clean(cmp.Or(g.Template, "–")), vms, strings.Replace(g.CPUs(), " vCPUs", "", 1), unit.FormatBytes(g.RAMBytes), disks,
				unit.FormatBytes(g.TouchedBytes))
		}
	}
	for _, w := range p.Workloads {
		if w.Load == nil || w.Load.Command == "" {
			continue
		}
		if v.Loads == nil {
			v.Loads = &draw.Table{Heads: []string{"workload", "group", "command"}, Left: 3}
		}
		v.Loads.Add(draw.Clean(w.Name), draw.Clean(w.Group), textio.Line(w.Load.Command))
	}
	v.Text = planText(raw)
	return v
}

// planTextMax bounds the plan that is shown in full; a larger one is only in the bundle.
const planTextMax = 64 << 10

func planText(raw json.RawMessage) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if len(raw) == 0 || len(raw) > planTextMax || encoder.Encode(raw) != nil {
		return ""
	}
	return textio.Lines(b.String())
}

// ColorsMax is the number of colours of lines that can be distinguished.
const ColorsMax = 8
