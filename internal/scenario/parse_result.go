package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

var (
	resultKeys = []string{"vm_group", "workload_name", "query", "metric", "workload_mask", "result_type", "title",
		"description", "id", "group", "aggregate", "step", "report_metrics", "report_group", "result_hint",
		"result_expected_value", "result_value_bands", "x_label", "y_label", "warmup", "expect", "overlay"}
	bandKeys      = []string{"name", "upper", "lower"}
	aggregates    = []string{"sum", "min", "mean", "median", "max"}
	reportMetrics = []string{"NoScore", "Variability", "Min", "Mean", "Median", "Max", "AnyFail"}
	clusterMetric = []string{"CpuUsage.Avg.Percent", "CpuUsage.Avg.Megahertz", "MemUsage.Avg.Percent",
		"NetReceived.Avg.KilobytesPerSecond", "NetTransmitted.Avg.KilobytesPerSecond"}
)

// resultTypes lists which result_type each source can have.
var resultTypes = map[ResultSource][]string{
	FromGroup:    {"iops", "bandwidth", "latency"},
	FromWorkload: {"iops", "bandwidth", "latency", "errors", "active"},
	FromQuery:    {"generic"},
	FromMetric:   nil,
}

func (p *parser) results(f fields) {
	for _, e := range p.section(f, "results") {
		p.checkName(e.name, "the result", entryNameMax)
		p.sc.Results = append(p.sc.Results, p.result(e))
	}
	p.overlays()
}

// overlaidMax is how many results one chart can tell apart.
const overlaidMax = 8

// overlaid is a result that shares a chart with others, and where it says so.
type overlaid struct {
	Result
	at yamltree.Node
}

// overlays checks that results of one overlay can be drawn over each other.
func (p *parser) overlays() {
	of := map[string][]overlaid{}
	for _, r := range p.overlaid {
		others := append(of[r.Overlay], r)
		of[r.Overlay] = others
		switch {
		case r.Source != FromWorkload:
			p.report(r.at, "overlay-of-nothing", "use workload_name: the time of a line counts from the start of its workload", "result %q: overlay needs a workload", r.Name)
		case r.Type != others[0].Type:
			p.report(r.at, "overlay-of-two-types", "give it another overlay", "result %q (%s) cannot share a chart with result %q (%s)", r.Name, r.Type, others[0].Name, others[0].Type)
		case len(others) == overlaidMax+1:
			p.report(r.at, "overlay-too-large", "use several overlays", "more than %d results have the overlay %q", overlaidMax, r.Overlay)
		}
	}
	for _, r := range p.overlaid {
		if len(of[r.Overlay]) == 1 {
			p.report(r.at, "overlay-of-one", "give another result the same overlay", "result %q is alone in the overlay %q", r.Name, r.Overlay)
		}
	}
}

func (p *parser) result(e entry) Result {
	f := p.mapping(e.value, e.name, fmt.Sprintf("result %q", e.name.Text), resultKeys)
	r := Result{
		Name:        e.name.Text,
		Title:       f.text("title"),
		Description: f.text("description"),
		XLabel:      f.text("x_label"),
		YLabel:      f.text("y_label"),
		Group:       p.groupRef(f, "vm_group"),
		Workload:    p.workloadRef(f, "workload_name"),
		Mask:        p.workloadRef(f, "workload_mask"),
		Query:       f.text("query"),
		Metric:      f.oneOf("metric", clusterMetric),
		Aggregate:   f.oneOf("aggregate", aggregates),
		Step:        f.duration("step"),
		ReportGroup: f.text("report_group"),
		Overlay:     f.text("overlay"),
		Hint:        f.text("result_hint"),
		WarmUp:      f.oneOf("warmup", []string{"auto"}),
		Pos:         p.pos(e.name),
	}
	rp := resultParser{f, &r}
	rp.oneSource()
	rp.resultType()
	rp.warmUp()
	rp.reportMetrics()
	rp.expectedValue()
	rp.thresholds()
	if n, ok := f.get("overlay"); ok && r.Overlay != "" {
		p.overlaid = append(p.overlaid, overlaid{r, n})
	}
	return r
}

// resultParser reads the parts of one result that depend on each other.
type resultParser struct {
	fields
	*Result
}

// oneSource finds the one source of the result's data. A query may name a VM group as well, for its macros.
func (r resultParser) oneSource() {
	var named []string
	for _, s := range []ResultSource{FromQuery, FromGroup, FromWorkload, FromMetric} {
		if _, ok := r.get(string(s)); ok {
			named = append(named, string(s))
		}
	}
	if len(named) == 2 && named[0] == string(FromQuery) && named[1] == string(FromGroup) {
		named = named[:1]
	}
	switch len(named) {
	case 0:
		r.report(r.at, "no-source", "add vm_group, workload_name, query or metric",
			"%s does not say where its data comes from", r.what)
		return
	case 1:
		r.Source = ResultSource(named[0])
	default:
		r.report(r.key[named[1]], "two-sources", "keep one of them", "%s has more than one source: %s", r.what,
			strings.Join(named, ", "))
		return
	}
	if r.Source != FromQuery {
		return
	}
	n, _ := r.get("query")
	r.QueryPos = r.pos(n)
	if strings.Contains(r.Query, "__curie_filter_vm_group__") && r.Group == "" && r.text("vm_group") == "" {
		r.report(n, "query-group", "add vm_group",
			"%s: the query asks for __curie_filter_vm_group__ and the result names no VM group", r.what)
	}
}

func (r resultParser) resultType() {
	r.Type = strings.ToLower(r.text("result_type"))
	allowed, known := resultTypes[r.Source]
	n, given := r.get("result_type")
	switch {
	case !known:
	case r.Source == FromMetric:
		if given {
			r.warn(n, "useless-key", "remove it", "%s: result_type has no effect beside metric", r.what)
		}
		r.Type = ""
	case !given && r.Source == FromQuery:
		r.Type = "generic"
	case !given:
		r.report(r.at, "missing-key", "add result_type: "+allowed[0], "%s has no %q", r.what, "result_type")
	case !slices.Contains(allowed, r.Type):
		hint := suggest(r.Type, allowed)
		if r.Type == "generic" {
			hint = "result_type: generic needs a query"
		}
		r.report(n, "unknown-value", hint, "%s: result_type cannot be %q with %s", r.what, r.Type, r.Source)
		r.Type = ""
	}
	if mask, ok := r.get("workload_mask"); ok && known && r.Source != FromGroup && r.Source != FromQuery {
		r.warn(mask, "useless-key", "remove it", "%s: workload_mask has no effect beside %s", r.what, r.Source)
	}
	if agg, ok := r.get("aggregate"); ok && r.Type == "latency" && (r.Aggregate == "min" || r.Aggregate == "median" || r.Aggregate == "max") {
		r.report(agg, "unknown-value", "use aggregate: mean", "%s: latencies of VMs cannot be combined by %q",
			r.what, r.Aggregate)
	}
}

// warmUp checks that a result which leaves out a warm-up names whose.
func (r resultParser) warmUp() {
	if n, ok := r.get("warmup"); ok && r.WarmUp != "" && (r.Workload == "" && r.Mask == "" || r.Source == FromMetric) {
		r.report(n, "warmup-of-nothing", "use workload_name, or add workload_mask to vm_group", "%s does not say whose warm-up to leave out", r.what)
	}
}

func (r resultParser) reportMetrics() {
	for _, n := range r.list("report_metrics") {
		if n.Kind != yamltree.Scalar || !slices.Contains(reportMetrics, n.Text) {
			r.report(n, "unknown-value", suggest(n.Text, reportMetrics), "%s: %s is not a report metric", r.what, quoteNode(n))
			continue
		}
		r.ReportMetrics = append(r.ReportMetrics, n.Text)
	}
}

func (r resultParser) expectedValue() {
	if v, ok := r.number("result_expected_value"); ok {
		r.Expected = &v
	}
	for _, n := range r.list("result_value_bands") {
		b := r.mapping(n, r.key["result_value_bands"], "a band of "+r.what, bandKeys)
		b.require(bandKeys...)
		upper, okU := b.number("upper")
		lower, okL := b.number("lower")
		if okU && okL && lower > upper {
			r.report(b.key["lower"], "out-of-range", "", "%s: lower is %v and upper is %v", b.what, lower, upper)
			continue
		}
		if okU && okL {
			r.Bands = append(r.Bands, Band{Name: b.text("name"), Lower: lower, Upper: upper})
		}
	}
}
