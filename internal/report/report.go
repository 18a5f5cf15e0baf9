// Package report renders the report of a run, and the comparison of several runs. Packages document and compare compute
// all numbers; renderers only format them, so all forms of the report agree.
//
//	document.Run ──Build──▶ Document ──▶ Terminal, Brief, JUnit here; HTML in page; JSON and CSV in document
//	compare.Comparison ──▶ ComparisonTerminal, ComparisonHTML
//
// The package measures and evaluates nothing. It reads the manifest, the plan, the events and the summary that sealing wrote, so
// the report of a ten-hour run is as cheap as that of a minute.
package report

import (
	"fmt"
	"io"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/textio"
)

// Options are the user's settings for a renderer. The zero value is ready to use.
type Options struct {
	Width int  // columns of the terminal form; 0: 100
	Color bool // escape codes in the terminal form
}

// Renderer is one form of the report.
type Renderer struct {
	Name      string // value of --format
	Summary   string // one line for a list
	Doc       string
	Extension string // file name extension, with its dot
	Render    func(w io.Writer, run *document.Run, o Options) error
}

// Renderers lists every form, the default first. To add one: a file beside this one and a line here.
func Renderers() []Renderer {
	return []Renderer{
		{
			Name: "html", Extension: ".html", Summary: "one self-contained page with interactive charts",
			Doc:    "One file that needs no network; with light, dark and print styles.",
			Render: func(w io.Writer, run *document.Run, _ Options) error { return page.HTML(w, run) },
		},
		{
			Name: "terminal", Extension: ".txt", Summary: "tables and sparklines for a terminal",
			Doc:    "Fits the width of the terminal; rows that are too wide are stacked, never truncated.",
			Render: func(w io.Writer, run *document.Run, o Options) error { return Terminal(w, run, o.Width, o.Color) },
		},
		{
			Name: "json", Extension: ".json", Summary: "every number, for programs",
			Doc:    "A stable format; docs/formats/report.md describes its keys.",
			Render: func(w io.Writer, run *document.Run, _ Options) error { return document.JSON(w, run) },
		},
		{
			Name: "csv", Extension: ".csv", Summary: "statistics, one row per result, window and series",
			Doc:    "Numbers have full precision; the unit is a separate column.",
			Render: func(w io.Writer, run *document.Run, _ Options) error { return document.CSV(w, run) },
		},
		{
			Name: "csv-points", Extension: ".csv", Summary: "the points of all charts, one row per point",
			Doc:    "A gap is a row with an empty value.",
			Render: func(w io.Writer, run *document.Run, _ Options) error { return document.CSVPoints(w, run) },
		},
		{
			Name: "junit", Extension: ".xml", Summary: "test cases, for continuous integration",
			Doc:    "One suite per run; an undecided check is an error, a missed threshold a failure.",
			Render: func(w io.Writer, run *document.Run, _ Options) error { return JUnit(w, run) },
		},
	}
}

// RendererByName returns the renderer with that name, or an error that lists the known names.
func RendererByName(name string) (Renderer, error) {
	var names []string
	for _, r := range Renderers() {
		if r.Name == name {
			return r, nil
		}
		names = append(names, r.Name)
	}
	e := &diag.Error{Code: "unknown-format", Exit: diag.ExitUsage,
		Message: fmt.Sprintf("unknown report format %q", name),
		Hint:    fmt.Sprintf("formats are %s", textio.JoinAnd(names))}
	if near := diag.Nearest(name, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %s?", near)
	}
	return Renderer{}, e
}
