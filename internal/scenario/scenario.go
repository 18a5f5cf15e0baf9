// Package scenario reads scenario folders: test.yml, its variables and presets, and the job files beside it.
//
// It renders the templates, parses strictly, and keeps the place of every value in the user's own text. It knows the shape of the
// document, not the meaning of steps: steps are calls with raw arguments that package planner binds.
//
//	folder + variables ──Load──▶ rendered text with line map ──Parse──▶ Scenario, or all diagnostics
//
// Scenarios are untrusted. Rendering and YAML parsing happen in a child process with a deadline and a memory bound.
package scenario

import (
	"path/filepath"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

// Scenario is one parsed document. It is immutable after Load and holds no runtime object.
type Scenario struct {
	ID               string        `json:"id,omitempty"`
	Name             string        `json:"name"`
	DisplayName      string        `json:"display_name"`
	Summary          string        `json:"summary"`
	Description      string        `json:"description"` // as written; X-Ray's descriptions are HTML and untrusted
	Tags             []string      `json:"tags,omitempty"`
	EstimatedRuntime time.Duration `json:"estimated_runtime_ns"`

	Inputs

	Groups    []Group    `json:"groups"`
	Workloads []Workload `json:"workloads"`
	Results   []Result   `json:"results"`
	Setup     []Call     `json:"setup"`
	Run       []Call     `json:"run"`
	Teardown  []Call     `json:"teardown"`

	Origin   `json:"-"`
	Hash     string    `json:"hash"` // SHA-256 of the source, the files and the chosen variables
	Warnings diag.List `json:"warnings,omitempty"`

	widths map[place]int // width in bytes of the value at a place of the source
}

// Inputs are the choices that a scenario offers, and the chosen values.
type Inputs struct {
	Variables []Variable `json:"variables,omitempty"`
	Presets   []string   `json:"presets,omitempty"` // names offered
	Preset    string     `json:"preset,omitempty"`  // name chosen
}

// Origin is where a scenario was read from, and the text of its files.
type Origin struct {
	Dir      string            // of the folder; empty for a shipped scenario and for a zip file
	Archive  string            // the zip file; empty for others
	Files    map[string]string // job files and playbooks that the document names, by their name
	Document string            // name of the document, as positions show it
	Source   string            // the document as written
	Rendered string
}

// Variable is one entry of vars with the value chosen for this run.
type Variable struct {
	Name        string        `json:"name"`
	DisplayName string        `json:"display_name,omitempty"`
	Description string        `json:"description,omitempty"`
	Default     any           `json:"default"` // string, int64, float64 or bool; so are Min, Max, Options, Value
	Min         any           `json:"min,omitempty"`
	Max         any           `json:"max,omitempty"`
	Options     []any         `json:"options,omitempty"`
	Value       any           `json:"value"`
	Origin      string        `json:"origin"`           // "default", "preset small", "command line"
	Hidden      bool          `json:"hidden,omitempty"` // its name begins with "_"
	Pos         diag.Position `json:"-"`
}

// Group is a set of identical VMs.
type Group struct {
	Name          string        `json:"name"`
	Template      string        `json:"template"`
	TemplateType  string        `json:"template_type,omitempty"` // "DISK" or "OVF"; empty is "DISK"
	VCPUs         int           `json:"vcpus,omitempty"`
	CPUSockets    int           `json:"cpu_sockets,omitempty"` // extension; 0: as the target divides them
	CPUThreads    int           `json:"cpu_threads,omitempty"` // extension: per core; 0 without CPUSockets
	RAMBytes      int64         `json:"ram_bytes,omitempty"`
	DiskCount     int           `json:"disk_count,omitempty"`
	DiskBytes     int64         `json:"disk_bytes,omitempty"` // of each data disk
	Nodes         string        `json:"nodes,omitempty"`      // slice text: "0", ":n-1", "all"; empty is all
	PerNode       int           `json:"count_per_node,omitempty"`
	PerCluster    int           `json:"count_per_cluster,omitempty"` // neither: one per node
	ExporterPorts []int         `json:"exporter_ports,omitempty"`
	Pos           diag.Position `json:"-"`
}

// Workload is a load definition that one group runs.
type Workload struct {
	Name              string            `json:"name"`
	Group             string            `json:"vm_group"`
	ConfigFile        string            `json:"config_file"`
	ReportingInterval time.Duration     `json:"reporting_interval_ns,omitempty"`
	Generator         string            `json:"generator,omitempty"`    // extension; empty: the engine of the run
	Options           map[string]string `json:"options,omitempty"`      // extension
	ServerGroup       string            `json:"server_group,omitempty"` // extension: its VMs run the servers of the load
	Mesh              bool              `json:"mesh,omitempty"`         // extension: every VM uses every server
	Pos               diag.Position     `json:"-"`

	OptionPos map[string]diag.Position `json:"-"`
}

// ResultSource is the source of the data of a Result.
type ResultSource string

const (
	FromGroup    ResultSource = "vm_group"      // device traffic of the whole group in the run phase
	FromWorkload ResultSource = "workload_name" // recorded by the workload itself
	FromQuery    ResultSource = "query"         // PromQL
	FromMetric   ResultSource = "metric"        // cluster metric, per node
)

// Result is one chart that the scenario requests.
type Result struct {
	Name          string        `json:"name"`
	Title         string        `json:"title,omitempty"`
	Description   string        `json:"description,omitempty"`
	XLabel        string        `json:"x_label,omitempty"`
	YLabel        string        `json:"y_label,omitempty"`
	Source        ResultSource  `json:"source"`
	Group         string        `json:"vm_group,omitempty"`
	Workload      string        `json:"workload_name,omitempty"`
	Mask          string        `json:"workload_mask,omitempty"` // restricts the window to the runs of that workload
	Type          string        `json:"result_type,omitempty"`   // iops, bandwidth, latency, errors, active, generic
	Query         string        `json:"query,omitempty"`
	Metric        string        `json:"metric,omitempty"`
	Aggregate     string        `json:"aggregate,omitempty"` // sum, min, mean, median, max; empty: one series each
	Step          time.Duration `json:"step_ns,omitempty"`
	ReportMetrics []string      `json:"report_metrics,omitempty"`
	ReportGroup   string        `json:"report_group,omitempty"`
	Overlay       string        `json:"overlay,omitempty"` // extension: results of one name also share a chart, each from its load's start
	Hint          string        `json:"result_hint,omitempty"`
	Expected      *float64      `json:"result_expected_value,omitempty"`
	Bands         []Band        `json:"result_value_bands,omitempty"`
	WarmUp        string        `json:"warmup,omitempty"` // extension: "auto" leaves out the warm-up of the workload
	Expect        []Threshold   `json:"expect,omitempty"` // extension: thresholds that set the exit code
	Pos           diag.Position `json:"-"`
	QueryPos      diag.Position `json:"-"`
}

// Band is a range of values drawn behind a chart.
type Band struct {
	Name  string  `json:"name"`
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
}

// Threshold is a threshold: "p99 < 5ms", "mean >= 10000". Statistic is mean, median, p95, p99, p99.9, max, min, cv or
// time_to_complete; Value is in the unit of the result (IOPS, bytes/s, nanoseconds, seconds).
type Threshold struct {
	Statistic string  `json:"statistic"`
	Operator  string  `json:"operator"` // < <= > >= == !=
	Value     float64 `json:"value"`
	Text      string  `json:"text"`             // as written
	Window    string  `json:"window,omitempty"` // name of a window; empty: the whole result
	// Event and VMs select costs of events: the name of a step, of a workload that starts, or a kind; "lived_on" or "taken_away".
	// Empty: all events; the VMs that lived on, or if there are none those that were taken away.
	Event     string        `json:"event,omitempty"`
	VMs       string        `json:"vms,omitempty"`
	Pos       diag.Position `json:"-"`
	WindowPos diag.Position `json:"-"`
}

// Call is one step as written.
type Call struct {
	Name string        `json:"name"` // dotted: "workload.Start"
	Args []Argument    `json:"args,omitempty"`
	Pos  diag.Position `json:"position"`

	Width        int `json:"-"` // bytes that the name takes at Pos
	RenderedLine int `json:"-"` // line in Scenario.Rendered, for Point
}

// Argument is one argument of a Call. Value is nil, string, int64, float64, bool, []any,
// map[string]any or Blocks.
type Argument struct {
	Name     string        `json:"name"`
	Value    any           `json:"value"`
	Pos      diag.Position `json:"-"` // of the name
	ValuePos diag.Position `json:"-"`
	Width    int           `json:"-"` // bytes that the value takes at ValuePos

	RenderedLine int `json:"-"` // of the value, for Point
}

// Blocks are steps within a step, as the value of one of its arguments: the branches of meta.Parallel, or the one list of
// meta.Repeat.
type Blocks [][]Call

// Flatten returns all calls in the order of the text; those below a call follow it.
func Flatten(calls []Call) []Call {
	var out []Call
	for _, c := range calls {
		out = append(out, c)
		for _, a := range c.Args {
			if blocks, ok := a.Value.(Blocks); ok {
				for _, block := range blocks {
					out = append(out, Flatten(block)...)
				}
			}
		}
	}
	return out
}

// place is a line and a column of the source, from 1.
type place struct{ line, column int }

// noteWidths notes how much of the source each value below n takes.
func (s *Scenario) noteWidths(n yamltree.Node) {
	if s.widths == nil {
		s.widths = map[place]int{}
	}
	at := place{n.Line, n.Column}
	if n.Kind == yamltree.Scalar {
		s.widths[at] = max(s.widths[at], n.Width)
	}
	for _, item := range n.Items {
		s.noteWidths(item)
	}
}

// Point fills in the lines that a diagnostic at d.Pos shows: the user's line and, if it differs, the rendered one (from 1; 0
// means unknown). Without a width, the value at its place is underlined.
func (s *Scenario) Point(d diag.Diagnostic, renderedLine int) diag.Diagnostic {
	if d.Width <= 1 {
		d.Width = s.widths[place{d.Pos.Line, d.Pos.Column}]
	}
	r := reader{source: splitLines(s.Source), rendered: splitLines(s.Rendered)}
	shown := r.diagnostic(d.Pos.Line, d.Pos.Column, d.Width, renderedLine)
	d.Width, d.Source, d.Rendered = shown.Width, shown.Source, shown.Rendered
	return d
}

// Path returns the path to display for a file of the scenario's directory, so that users can open it. Other names are
// returned unchanged.
func (s *Scenario) Path(file string) string {
	if _, ok := s.Files[file]; !ok {
		return file
	}
	return filepath.Join(filepath.Dir(s.Document), file)
}

// Group returns the group with that name.
func (s *Scenario) Group(name string) (Group, bool) {
	for _, g := range s.Groups {
		if g.Name == name {
			return g, true
		}
	}
	return Group{}, false
}

// Workload returns the workload with that name.
func (s *Scenario) Workload(name string) (Workload, bool) {
	for _, w := range s.Workloads {
		if w.Name == name {
			return w, true
		}
	}
	return Workload{}, false
}

// Queries lists the metric queries of the results.
func (s *Scenario) Queries() []string {
	var list []string
	for _, r := range s.Results {
		if r.Query != "" {
			list = append(list, r.Query)
		}
	}
	return list
}
