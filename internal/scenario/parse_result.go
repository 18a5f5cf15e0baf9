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
		"result_expected_value", "result_value_bands", "x_label", "y_label", "expect"}
	bandKeys      = []string{"name", "upper", "lower"}
	aggregates    = []string{"sum", "min", "mean", "median", "max"}
	reportMetrics = []string{"NoScore", "Variability", "Min", "Mean", "Median", "Max", "AnyFail"}
	clusterMetric = []string{"CpuUsage.Avg.Percent", "CpuUsage.Avg.Megahertz", "MemUsage.Avg.Percent",
		"NetReceived.Avg.KilobytesPerSecond", "NetTransmitted.Avg.KilobytesPerSecond"}
)

// resultTypes says which result_type each source can have.
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
}

func (p *parser) result(e entry) Result {
	f := p.fields(e.value, e.name, fmt.Sprintf("result %q", e.name.Text), resultKeys)
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
		Hint:        f.text("result_hint"),
		Pos:         p.pos(e.name),
	}
	p.oneSource(f, &r)
	p.resultType(f, &r)
	p.reportMetrics(f, &r)
	p.expectedValue(f, &r)
	p.expectations(f, &r)
	return r
}

// oneSource finds the one source of the result's data. A query may name a VM group as well, for its macros.
func (p *parser) oneSource(f fields, r *Result) {
	var named []string
	for _, s := range []ResultSource{FromQuery, FromGroup, FromWorkload, FromMetric} {
		if _, ok := f.get(string(s)); ok {
			named = append(named, string(s))
		}
	}
	if len(named) == 2 && named[0] == string(FromQuery) && named[1] == string(FromGroup) {
		named = named[:1]
	}
	switch len(named) {
	case 0:
		p.report(f.at, "no-source", "add vm_group, workload_name, query or metric",
			"%s does not say where its data comes from", f.what)
		return
	case 1:
		r.Source = ResultSource(named[0])
	default:
		p.report(f.key[named[1]], "two-sources", "keep one of them", "%s has more than one source: %s", f.what,
			strings.Join(named, ", "))
		return
	}
	if r.Source != FromQuery {
		return
	}
	n, _ := f.get("query")
	r.QueryPos = p.pos(n)
	if strings.Contains(r.Query, "__curie_filter_vm_group__") && r.Group == "" && f.text("vm_group") == "" {
		p.report(n, "query-group", "add vm_group",
			"%s: the query asks for __curie_filter_vm_group__ and the result names no VM group", f.what)
	}
}

func (p *parser) resultType(f fields, r *Result) {
	r.Type = strings.ToLower(f.text("result_type"))
	allowed, known := resultTypes[r.Source]
	n, given := f.get("result_type")
	switch {
	case !known:
	case r.Source == FromMetric:
		if given {
			p.warn(n, "useless-key", "remove it", "%s: result_type has no effect beside metric", f.what)
		}
		r.Type = ""
	case !given && r.Source == FromQuery:
		r.Type = "generic"
	case !given:
		p.report(f.at, "missing-key", "add result_type: "+allowed[0], "%s has no %q", f.what, "result_type")
	case !slices.Contains(allowed, r.Type):
		hint := suggest(r.Type, allowed)
		if r.Type == "generic" {
			hint = "result_type: generic needs a query"
		}
		p.report(n, "unknown-value", hint, "%s: result_type cannot be %q with %s", f.what, r.Type, r.Source)
		r.Type = ""
	}
	if mask, ok := f.get("workload_mask"); ok && known && r.Source != FromGroup && r.Source != FromQuery {
		p.warn(mask, "useless-key", "remove it", "%s: workload_mask has no effect beside %s", f.what, r.Source)
	}
	if agg, ok := f.get("aggregate"); ok && r.Type == "latency" && (r.Aggregate == "min" || r.Aggregate == "median" || r.Aggregate == "max") {
		p.report(agg, "unknown-value", "use aggregate: mean", "%s: latencies of VMs cannot be combined by %q",
			f.what, r.Aggregate)
	}
}

func (p *parser) reportMetrics(f fields, r *Result) {
	for _, n := range f.list("report_metrics") {
		if n.Kind != yamltree.Scalar || !slices.Contains(reportMetrics, n.Text) {
			p.report(n, "unknown-value", suggest(n.Text, reportMetrics), "%s: %s is not a report metric", f.what, quoteNode(n))
			continue
		}
		r.ReportMetrics = append(r.ReportMetrics, n.Text)
	}
}

func (p *parser) expectedValue(f fields, r *Result) {
	if v, ok := f.number("result_expected_value"); ok {
		r.Expected = &v
	}
	for _, n := range f.list("result_value_bands") {
		b := p.fields(n, f.key["result_value_bands"], "a band of "+f.what, bandKeys)
		b.require(bandKeys...)
		upper, okU := b.number("upper")
		lower, okL := b.number("lower")
		if okU && okL && lower > upper {
			p.report(b.key["lower"], "out-of-range", "", "%s: lower is %v and upper is %v", b.what, lower, upper)
			continue
		}
		if okU && okL {
			r.Bands = append(r.Bands, Band{Name: b.text("name"), Lower: lower, Upper: upper})
		}
	}
}
