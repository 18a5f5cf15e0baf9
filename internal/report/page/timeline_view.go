package page

import (
	"fmt"
	"math"
	"slices"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/unit"
)

// timelineView is the timeline as an SVG. Horizontal positions are percentages, so that it fits any width while its text keeps
// its size.
type timelineView struct {
	Height int
	Label  string
	Phases []timelineBar
	Loads  []timelineBar
	Marks  []timelineMark
	Ticks  []timelineTick
	List   []document.Mark
}

type timelineBar struct {
	X, Width, Text, Title string
	Room                  string // space for the text, up to the next bar of the lane
	Y                     int
	Prefill               bool
}

type timelineMark struct {
	X, Title, Class  string
	Y, TextY, Number int
}

type timelineTick struct {
	X, Text, Anchor string
	Y, TextY        int
}

const (
	timelineLanes   = 10  // of workloads; more share the last one
	timelineLane    = 20  // pixels
	timelineTop     = 30  // below the phases
	timelineMarkGap = 2.2 // per cent of the width below which two marks are drawn below each other
	timelineMarkRow = 20
	timelineRowsMax = 4
	timelineLetter  = 0.7 // per cent of a usual width that a letter takes
)

func newTimeline(d *document.Document) *timelineView {
	end := d.DurationNanos
	for _, p := range d.Phases {
		end = max(end, p.ToNanos)
	}
	if end <= 0 || len(d.Phases)+len(d.Workloads)+len(d.Marks) == 0 {
		return nil
	}
	at := func(nanos int64) float64 { return 100 * float64(min(max(nanos, 0), end)) / float64(end) }
	v := &timelineView{List: d.Marks, Label: "Timeline of phases, workloads and events over " + unit.FormatClock(end)}
	for _, p := range d.Phases {
		b := timelineBar{X: percentX(at(p.FromNanos)), Width: percentX(max(0.15, at(p.ToNanos)-at(p.FromNanos))),
			Title: fmt.Sprintf("%s, %s to %s", p.Name, unit.FormatClock(p.FromNanos), unit.FormatClock(p.ToNanos))}
		if at(p.ToNanos)-at(p.FromNanos) > timelineLetter*float64(len(p.Name)+2) {
			b.Text = p.Name
		}
		v.Phases = append(v.Phases, b)
	}
	lanes := v.addLoads(d, at)
	y := timelineTop + lanes*timelineLane + 12
	y = v.addMarks(d.Marks, at, y)
	v.addTicks(end, at, y)
	v.Height = y + 24
	return v
}

// addLoads draws each workload as a bar in the first lane that is free, and returns the number of lanes.
func (v *timelineView) addLoads(d *document.Document, at func(int64) float64) int {
	var lanes [][]int // indexes of bars
	end := make([]int64, 0, timelineLanes)
	bars := make([][2]float64, len(d.Workloads))
	for i := range d.Workloads {
		w := &d.Workloads[i]
		lane := slices.IndexFunc(end, func(end int64) bool { return end <= w.FromNanos })
		if lane < 0 {
			lane = min(len(end), timelineLanes-1)
		}
		if lane == len(end) {
			end, lanes = append(end, 0), append(lanes, nil)
		}
		end[lane] = max(end[lane], w.ToNanos)
		lanes[lane] = append(lanes[lane], i)
		bars[i] = [2]float64{at(w.FromNanos), at(w.ToNanos)}
		v.Loads = append(v.Loads, timelineBar{X: percentX(bars[i][0]), Width: percentX(max(0.15, bars[i][1]-bars[i][0])),
			Y: timelineTop + lane*timelineLane, Text: w.Title(), Prefill: w.Prefill,
			Title: fmt.Sprintf("%s, %s to %s", w.Title(), unit.FormatClock(w.FromNanos), unit.FormatClock(w.ToNanos))})
	}
	for _, lane := range lanes {
		for k, i := range lane {
			room := 100.0
			if k+1 < len(lane) {
				room = bars[lane[k+1]][0]
			}
			room = max(0, room-bars[i][0])
			if v.Loads[i].Room = percentX(room); room < timelineLetter*float64(len(v.Loads[i].Text)+2) {
				v.Loads[i].Text = ""
			}
		}
	}
	return len(lanes)
}

// addMarks draws the numbered events; events close together are stacked. It returns where the ticks begin.
func (v *timelineView) addMarks(marks []document.Mark, at func(int64) float64, y int) int {
	var rows [timelineRowsMax]float64
	for i := range rows {
		rows[i] = math.Inf(-1)
	}
	used := 0
	for _, m := range marks {
		x := at(m.AtNanos)
		row := 0
		for row < timelineRowsMax-1 && x-rows[row] < timelineMarkGap {
			row++
		}
		rows[row] = x
		used = max(used, row+1)
		class := m.Kind
		if m.Failed {
			class += " failed"
		}
		v.Marks = append(v.Marks, timelineMark{X: percentX(x), Y: y + row*timelineMarkRow, TextY: y + row*timelineMarkRow + 4,
			Number: m.Number, Title: unit.FormatClock(m.AtNanos) + " " + m.Label, Class: class})
	}
	return y + used*timelineMarkRow
}

// tickSteps are the distances in seconds between marks of time.
var tickSteps = []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800}

func (v *timelineView) addTicks(end int64, at func(int64) float64, y int) {
	const ticksMax = 8
	step := tickSteps[len(tickSteps)-1]
	for _, s := range tickSteps {
		if end/1e9/s <= ticksMax {
			step = s
			break
		}
	}
	for s := int64(0); s*1e9 <= end && len(v.Ticks) < 4*ticksMax; s += step {
		anchor := "middle"
		switch x := at(s * 1e9); {
		case x < 2:
			anchor = "start"
		case x > 98:
			anchor = "end"
		}
		v.Ticks = append(v.Ticks, timelineTick{X: percentX(at(s * 1e9)), Text: unit.FormatClock(s * 1e9), Anchor: anchor, Y: y - 4, TextY: y})
	}
}

func percentX(p float64) string { return fmt.Sprintf("%.3f%%", p) }
