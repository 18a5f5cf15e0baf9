// Package page renders the report as one self-contained HTML file, and the parts that a comparison shares: charts, marks, the
// frame. A page needs no network and no other file.
//
//	Document ──▶ figures and charts ──templates──▶ HTML
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

//go:embed assets
var assets embed.FS

var (
	styleFiles  = []string{"uplot/uplot.min.css", "report.css", "report-figures.css"}
	scriptFiles = []string{"sharp.js", "uplot/uplot.iife.min.js", "format.js", "marks.js", "chart.js", "lanes.js", "against.js", "page.js"}
)

// Shell is the input of the outermost template. A page is one file without references to others.
type Shell struct {
	Title      string
	Rehearsal  bool
	Comparison bool // not the report of one run
	Trend      bool // nor this
	Policy     string
	Styles     []template.CSS
	Scripts    []template.JS
	Data       template.JS
}

// HTML writes the report as one self-contained page that loads no other resource.
func HTML(w io.Writer, run *document.Run) error {
	view, err := newPageView(run)
	if err != nil {
		return fmt.Errorf("write report %q: %w", run.Manifest.Run, err)
	}
	if err := Templates().ExecuteTemplate(w, "page", view); err != nil {
		return fmt.Errorf("write report %q: %w", run.Manifest.Run, err)
	}
	return nil
}

// NewShell reads styles and scripts and allows exactly these by their hashes. Even if a hostile name got into the page as markup,
// the browser would not run it or fetch anything.
func NewShell(title string, rehearsal bool, data any) (Shell, error) {
	text, err := scriptJSON(data)
	if err != nil {
		return Shell{}, err
	}
	s := Shell{Title: title, Rehearsal: rehearsal, Data: template.JS(text)}
	if rehearsal {
		s.Title = "REHEARSAL · " + title
	}
	var scripts, styles []string
	for _, name := range scriptFiles {
		text, err := asset(name)
		if err != nil {
			return Shell{}, err
		}
		s.Scripts = append(s.Scripts, template.JS(text))
		scripts = append(scripts, hashSource(text))
	}
	for _, name := range styleFiles {
		text, err := asset(name)
		if err != nil {
			return Shell{}, err
		}
		s.Styles = append(s.Styles, template.CSS(text))
		styles = append(styles, hashSource(text))
	}
	s.Policy = fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'",
		strings.Join(scripts, " "), strings.Join(styles, " "))
	return s, nil
}

func asset(name string) (string, error) {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		return "", fmt.Errorf("read asset: %w", err)
	}
	return string(text), nil
}

func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var Templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(templateFunctions).ParseFS(assets, "assets/*.tmpl.html"))
})

var templateFunctions = template.FuncMap{
	"amount":         func(v result.Number, unit string) string { return draw.Amount(float64(v), unit) },
	"captioned":      captioned,
	"checkClass":     checkClass,
	"checkText":      document.CheckText,
	"clock":          unit.FormatClock,
	"count":          unit.FormatWhole,
	"date":           func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04:05 MST") },
	"displayName":    document.DisplayName,
	"duration":       draw.Duration,
	"operationTable": document.OperationTable,
	"recoveryTable":  document.RecoveryTable,
	"singleTable":    document.SingleTable,
	"eventLines":     eventLines,
	"doubts":         func(list []finding.Finding) []document.ShownFinding { return findingsOf(list, false) },
	"notes":          func(list []finding.Finding) []document.ShownFinding { return findingsOf(list, true) },
	"costTable":      document.CostTable,
	"headline":       result.Headline,
	"headlineTable":  document.HeadlineTable,
	"headlineNote":   document.HeadlineNote,
	"costsNote":      document.CostsNote,
	"latencyTable":   document.LatencyTable,
	"failure":        func(cell string) bool { return strings.HasPrefix(cell, "failed: ") || cell == "no end" },
	"lanes":          inLanes,
	"lower":          func(v any) string { return strings.ToLower(fmt.Sprint(v)) },
	"metricLabel":    document.MetricLabel,
	"percentText":    func(r *document.Result) string { return r.PercentText() },
	"passClass":      passClass,
	"passText":       document.PassText,
	"quantity":       anyQuantity,
	"rfc3339":        func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"sentence":       document.Sentence,
	"stagesTable":    document.StagesTable,
	"stagesName":     document.StagesName,
	"stagesNote":     func() string { return document.StagesNote },
	"scalingTable":   document.ScalingTable,
	"scalingText":    document.ScalingText,
	"seriesLabel":    document.SeriesLabel,
	"severity":       severityText,
	"subject":        document.SubjectBeside,
	"short":          func(name string) bool { return len(name) <= 32 },
	"statisticHeads": func() []string { return document.StatisticHeads },
	"stepTable":      document.StepTable,
	"targetLine":     document.TargetLine,
	"windowLabel":    document.WindowLabel,
	"xrayText":       document.XrayText,
	"workloadTable":  document.WorkloadTable,
}

// captioned accepts a table as a value or as a pointer.
func captioned(caption string, t any) captionedTable {
	if p, ok := t.(*draw.Table); ok {
		return captionedTable{caption, *p}
	}
	return captionedTable{caption, t.(draw.Table)}
}

type captionedTable struct {
	Caption string
	Table   draw.Table
}

// anyQuantity accepts the number types that templates use.
func anyQuantity(v any, unit string) string {
	switch v := v.(type) {
	case result.Number:
		return draw.Quantity(float64(v), unit)
	case *float64:
		return draw.Quantity(*v, unit)
	case float64:
		return draw.Quantity(v, unit)
	}
	return "–"
}

func severityText(s finding.Severity) string {
	return map[finding.Severity]string{finding.Fail: "Failed.", finding.Undecided: "Undecided.", finding.Warning: "Warning.",
		finding.Info: "Note."}[s]
}

func passClass(pass *bool) string {
	switch {
	case pass == nil:
		return ""
	case *pass:
		return "pass"
	}
	return "fail"
}

func checkClass(c result.Check) string {
	if c.Reason != "" {
		return "open"
	}
	return passClass(&c.Passed)
}

// eventLine is one line of the list of events.
type eventLine struct{ At, Text string }

func eventLines(d *document.Document) []eventLine {
	var list []eventLine
	for _, e := range d.Events {
		if text := document.EventText(e); text != "" {
			list = append(list, eventLine{unit.FormatClock(e.AtNanos), text})
		}
	}
	return list
}

// findingsOf are the findings that only explain numbers, or all others.
func findingsOf(list []finding.Finding, notes bool) []document.ShownFinding {
	return document.ShownFindings(slices.DeleteFunc(slices.Clone(list), func(f finding.Finding) bool { return (f.Severity == finding.Info) != notes }))
}
