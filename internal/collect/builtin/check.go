package builtin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
)

// checkTimeout bounds one reading of a check.
const checkTimeout = 20 * time.Second

// List adds the sources of a target file to a plan, without reading them, and warns of queries of charts that cannot be evaluated.
func List(c *target.Config, p *plan.Plan) {
	p.Sources = listed(c)
	p.Warnings = append(p.Warnings, CheckCharts(c)...)
}

// CheckCharts reports queries of charts that are not PromQL.
func CheckCharts(c *target.Config) (problems diag.List) {
	for _, s := range Sources(c) {
		for _, one := range s.Charts {
			if err := metric.CheckQuery(collect.RateQuery(one.Query, s.Interval), ""); err != nil {
				problems.Warnf(diag.Position{File: c.File}, "source-chart", "source %q: chart %q: %v", s.Name, one.Title, err)
			}
		}
	}
	return problems
}

func listed(c *target.Config) []plan.Source {
	var list []plan.Source
	for _, s := range Sources(c) {
		one := plan.Source{Name: s.Name, Kind: s.Kind, URL: s.URL, Interval: s.Interval, Reads: reads(s)}
		if s.TLS == target.TLSUnverified || s.TLS == target.TLSNone {
			one.TLS = s.TLS
		}
		switch {
		case s.Node != "":
			one.Nodes = "all of " + s.Node
		case s.IsExporter() || s.NodeLabel != "":
			one.Nodes = "by label " + cmp.Or(s.NodeLabel, collect.LabelNode)
		default:
			one.Nodes = "by host name"
		}
		one.VMs = "those of the run"
		if s.IsExporter() {
			one.VMs = "by label " + cmp.Or(s.VMLabel, collect.LabelVM)
		}
		list = append(list, one)
	}
	return list
}

// reads describes which metrics or objects of a source are recorded.
func reads(s target.Source) string {
	switch {
	case s.IsExporter() && len(s.Keep) > 0:
		return "metrics " + strings.Join(s.Keep, ", ")
	case s.Kind == target.SourcePrometheus:
		return "all metrics"
	case s.IsExporter():
		return "metrics of " + s.Kind
	case len(s.Objects) > 0:
		return strings.Join(s.Objects, ", ")
	}
	return "all objects"
}

// Check lists the sources of a target file and reads each of them once, side by side. A source that cannot be read is a warning: runs do
// without it.
func Check(ctx context.Context, c *target.Config, nodes []target.Node) ([]plan.Source, diag.List) {
	all := listed(c)
	var work sync.WaitGroup
	for i, s := range Sources(c) {
		work.Go(func() { check(ctx, c, s, nodes, &all[i]) })
	}
	work.Wait()
	problems := diag.List{}
	for _, one := range all {
		switch at := (diag.Position{File: c.File}); {
		case one.Check.Error != "":
			problems.Warnf(at, "source-silent", "%s", one.Check.Error)
		case one.Check.Samples == 0:
			problems.Warnf(at, "source-empty", "source %q: it answers, but has none of the metrics that are read (%s)", one.Name, one.Reads)
		case len(one.Check.Unused) > 0:
			problems.Warnf(at, "source-unused", "source %q: no effect: %s", one.Name, strings.Join(one.Check.Unused, "; "))
		case len(one.Check.Unmapped) > 0 && len(one.Check.Nodes) == 0: // a source that also has other nodes is common
			problems.Add(unmapped(at, one, nodes))
		}
	}
	return all, problems
}

// namesMax bounds the nodes that a message names.
const namesMax = 8

// unmapped says that a source has samples of nodes, and none of them is of the target.
func unmapped(at diag.Position, s plan.Source, nodes []target.Node) diag.Diagnostic {
	var known []string
	for _, n := range nodes {
		known = append(known, cmp.Or(n.Name, n.ID))
	}
	d := diag.Diagnostic{
		Severity: diag.SeverityWarning, Code: "source-unmapped", Pos: at,
		Message: fmt.Sprintf("source %q: no sample belongs to a node of this target (found: %s)", s.Name, textio.Few(s.Check.Unmapped, namesMax)),
		Hint:    "its nodes are " + textio.Few(known, namesMax),
	}
	if near := diag.Nearest(s.Check.Unmapped[0], known); near != "" {
		d.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return d
}

func check(ctx context.Context, c *target.Config, s target.Source, nodes []target.Node, listed *plan.Source) {
	out := &plan.SourceCheck{}
	listed.Check = out
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	collector, err := Open(ctx, c, collect.Options{Source: s, IsVM: func(string) bool { return false }})
	if err != nil {
		out.Error = diag.Sentence(err)
		return
	}
	defer collector.Close()
	r, err := collector.Collect(ctx)
	if err != nil {
		out.Error = diag.Sentence(err)
		return
	}
	out.Samples, out.Missing = len(r.Samples), r.Missing
	out.Age, out.AgeKnown = r.Age(time.Now())
	assign(listed, s, r, collect.NewMapping(nodes, c.Nodes, ""), nodes)
}

// assign finds which nodes have samples, which values name none, and which keys of the source match nothing.
func assign(listed *plan.Source, s target.Source, r collect.Reading, mapping *collect.Mapping, nodes []target.Node) {
	out, names := listed.Check, map[string]string{}
	for _, n := range nodes {
		names[n.ID] = cmp.Or(n.Name, n.ID)
	}
	metrics, found, unknown, labels := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, sample := range r.Samples {
		metrics[sample.Name] = true
		for label := range sample.Labels {
			labels[label] = true
		}
		mapped := mapping.Apply(s, sample.Labels)
		if id := mapped[collect.LabelNode]; id != "" {
			found[cmp.Or(names[id], id)] = true
		} else if other := mapped["exported_"+collect.LabelNode]; other != "" {
			unknown[other] = true
		}
	}
	out.Metrics = len(metrics)
	out.Nodes, out.Unmapped = slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(unknown))
	if s.IsExporter() && s.VMLabel == "" && !labels[collect.LabelVM] {
		listed.VMs = ""
	}
	if s.IsExporter() && s.Node == "" && s.NodeLabel == "" && !labels[collect.LabelNode] {
		listed.Nodes = ""
	}
	for key, label := range map[string]string{"node_label": s.NodeLabel, "vm_label": s.VMLabel} {
		if label != "" && !labels[label] {
			out.Unused = append(out.Unused, fmt.Sprintf("%s: no sample has the label %s", key, label))
		}
	}
	for _, pattern := range s.Keep {
		renamed := s.Rename[pattern]
		if !metrics[renamed] && !slices.ContainsFunc(slices.Collect(maps.Keys(metrics)), func(name string) bool { return collect.Matches([]string{pattern}, name) }) {
			out.Unused = append(out.Unused, "keep: no metric "+pattern)
		}
	}
	for from, to := range s.Rename {
		if !metrics[to] {
			out.Unused = append(out.Unused, "rename: no metric "+from)
		}
	}
	for _, c := range s.Charts {
		named := metric.Named([]string{collect.RateQuery(c.Query, s.Interval)})
		if !slices.ContainsFunc(slices.Collect(maps.Keys(metrics)), named) {
			out.Unused = append(out.Unused, fmt.Sprintf("chart %q: no metric of its query", c.Title))
		}
	}
	slices.Sort(out.Unused)
}
