package live

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

var nan = math.NaN()

const (
	liveHint     = "Ctrl-C stops the run, cleans up and writes the report."
	livePageTime = 3 * time.Second // each page of workloads, where not all fit on the screen
	liveSpark    = 30
	// liveOverdueMin suppresses the overdue text for steps that take a little longer than planned.
	liveOverdueMin = 5 * time.Second
)

func (s *state) elapsed() time.Duration {
	if s.zero.IsZero() {
		return 0
	}
	return time.Since(s.zero)
}

// remaining estimates the time left from the position in the plan, so that a step that took longer than planned moves the end.
// overdue is by how much the current step exceeds its plan; left does not decrease during that time. ok is false without a plan.
func (s *state) remaining() (left, overdue time.Duration, ok bool) {
	if s.total == 0 {
		return 0, 0, false
	}
	at := time.Duration(0)
	for _, o := range s.open {
		p, known := s.planned[o.StepID]
		if !known {
			continue
		}
		inStep := s.elapsed() - time.Duration(o.AtNanos)
		if reached := p.Start + min(max(inStep, 0), p.Duration); reached >= at {
			at, overdue = reached, max(0, inStep-max(p.Duration, p.Longest))
		}
	}
	if len(s.open) == 0 || at == 0 {
		at = s.elapsed()
	}
	return max(0, s.total-at), overdue, true
}

// bootsMax bounds the VMs that the line names.
const bootsMax = 3

// leftText prints the remaining time: ", about 5m left, this step is 20s over estimate", and what such a step may wait for.
func (s *state) leftText() string {
	left, overdue, known := s.remaining()
	if !known {
		return ""
	}
	text := ", about " + draw.Duration(int64(left.Truncate(time.Second))) + " left"
	if overdue >= liveOverdueMin {
		text += ", this step is " + draw.Duration(int64(overdue.Truncate(time.Second))) + " over estimate"
		if len(s.boots) > 0 {
			text += ", no answer yet from agents on " + draw.Clean(textio.Few(slices.Sorted(maps.Keys(s.boots)), bootsMax))
		}
	}
	return text
}

// block draws the part that is redrawn, in at most rows lines of width columns.
func (s *state) block(columns, rows int, st draw.Style) []string {
	lines := s.header(columns, st)
	foot := draw.Wrap(liveHint, columns)
	for i := range foot {
		foot[i] = st.Dim(foot[i])
	}
	stale := s.staleLines(columns)
	body := s.table(columns, rows-len(lines)-len(stale)-len(foot), st)
	return append(append(append(lines, body...), stale...), foot...)
}

func (s *state) header(columns int, st draw.Style) []string {
	var lines []string
	title := s.title
	if s.rehearsal {
		title = strings.TrimSpace("REHEARSAL  " + title)
	}
	times := draw.Duration(int64(s.elapsed().Truncate(time.Second))) + " elapsed"
	left, _, known := s.remaining()
	times += s.leftText()
	if title != "" {
		for _, l := range draw.Wrap(title, columns) {
			lines = append(lines, st.Bold(l))
		}
	}
	head := s.phase
	if s.steps > 0 {
		head = strings.TrimSpace(fmt.Sprintf("%s  %d of %d steps done", head, s.done, s.steps))
	}
	head = strings.TrimSpace(head + "  " + times)
	if room := columns - draw.DisplayWidth(head) - 2; known && room >= 12 {
		head += "  " + st.Accent(bar(s.elapsed(), left, min(room, 40)))
		lines = append(lines, head)
	} else {
		lines = append(lines, draw.Wrap(head, columns)...)
	}
	for _, o := range s.open {
		text := fmt.Sprintf("▸ %s (%s)", stepHeading(o), unit.FormatClock(int64(s.elapsed())-o.AtNanos))
		lines = append(lines, draw.Wrap(text, columns)...)
	}
	return lines
}

func bar(elapsed, left time.Duration, columns int) string {
	filled := 0
	if total := elapsed + left; total > 0 {
		filled = int(float64(elapsed) / float64(total) * float64(columns))
	}
	return strings.Repeat("█", filled) + strings.Repeat("░", max(0, columns-filled))
}

// table draws the running workloads. If they do not fit, it cycles through pages and says so.
func (s *state) table(columns, rows int, st draw.Style) []string {
	if len(s.loads) == 0 {
		return nil
	}
	all := s.tableOf(s.loads, columns, st)
	if len(all) <= rows {
		return all
	}
	perLoad := max(1, (len(all)-1)/len(s.loads))
	page := max(1, (rows-2)/perLoad)
	pages := (len(s.loads) + page - 1) / page
	current := int(s.elapsed()/livePageTime) % pages
	from, to := current*page, min(len(s.loads), (current+1)*page)
	lines := s.tableOf(s.loads[from:to], columns, st)
	return append(lines, st.Dim(textio.Clip(fmt.Sprintf("workloads %d to %d of %d", from+1, to, len(s.loads)), columns)))
}

// tableOf shrinks the sparkline before it stacks rows.
func (s *state) tableOf(loads []*liveLoad, columns int, st draw.Style) []string {
	var t draw.Table
	for _, spark := range []int{liveSpark, liveSpark / 2, liveSpark / 4} {
		spark = min(spark, columns-14) // a stacked row has its heading before it
		t = draw.Table{Heads: []string{"workload", "VMs", "rate", "bandwidth", "p50", "p99", "errors", "last minute"}, Left: 1}
		for _, l := range loads {
			history := l.history(spark)
			t.Add(append(s.cells(l), draw.Fill(draw.SparkOf(history, draw.Largest(history)), spark))...)
		}
		if t.Fits(columns) {
			break
		}
	}
	return t.Lines(columns, st)
}

func (s *state) cells(l *liveLoad) []string {
	operations, bytes, latency := l.recent(s)
	if !l.counted() {
		return []string{l.name(), s.vmsOf(l), "–", "–", "–", "–", "–"}
	}
	if s.heardNothingOf(l) {
		return []string{l.name(), s.vmsOf(l), "– " + l.unit, "–", "–", "–", unit.FormatWhole(l.errors)}
	}
	bandwidth := "–"
	if l.movesBytes() {
		bandwidth = draw.Quantity(bytes, "B/s")
	}
	return []string{l.name(), s.vmsOf(l), draw.Quantity(math.Round(operations), l.unit), bandwidth,
		draw.Quantity(latency.Quantile(0.5), "ns"), draw.Quantity(latency.Quantile(0.99), "ns"), unit.FormatWhole(l.errors)}
}

// progress returns the lines that a log gets at intervals.
func (s *state) progress() []string {
	if s.stopped || s.zero.IsZero() {
		return nil
	}
	head := unit.FormatClock(int64(s.elapsed())) + "  " + draw.Clean(s.phase)
	head += s.leftText()
	for _, l := range s.loads {
		if !l.counted() {
			head += "; " + l.name()
			continue
		}
		c := s.cells(l)
		rates := c[2]
		if l.movesBytes() {
			rates += ", " + c[3]
		}
		head += fmt.Sprintf("; %s: %s, p50 %s, p99 %s, %s errors", c[0], rates, c[4], c[5], c[6])
	}
	return append([]string{head}, s.staleLines(math.MaxInt32)...)
}
