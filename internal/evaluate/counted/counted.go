// Package counted lists the charts of what sources of a target file counted: operations, bytes and latencies as the storage itself saw
// them, on the axis of the load.
//
//	manifest (sources) ──Charts──▶ results with their PromQL, without data
//	samples ──Record.Add──▶ how old values were ──Source──▶ one sentence
//
// It queries nothing: package evaluate does.
package counted

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/unit"
)

// Group is the heading of these results in reports.
const Group = "What the storage counted"

// Chart is one result to evaluate.
type Chart struct {
	Source   result.SourceInfo
	Title    string
	Unit     string
	Query    string
	Lookback time.Duration // how far before its time a point may describe
	Averages bool
	Note     string
}

// spacing is the distance in periods between two readings, or between a reading and an end of a window, up to which PromQL continues a rate to that end.
// Beyond it, it takes the counter to begin half way, and the rate of the window is too low: after two readings of a source, by a third.
const spacing = 1.1

// fresh is how old a latency may be, in half periods. An interval with few operations has none, and that of an earlier one must not take its place beside its
// operations.
const fresh = 3

// form is a chart of a kind of source. In its query, S stands for the matcher of the source, W for the window,
// B for its beginning, and L for the time in which a latency is that of the latest interval.
type form struct {
	title, unit, query, note string
	averages                 bool
}

// Charts lists the charts of the sources of a run. seen has its samples: a source that measures less often than it is read needs longer windows.
func Charts(m *result.Manifest, seen Record) []Chart {
	var all []Chart
	for _, s := range m.Target.Sources {
		period := max(time.Duration(s.IntervalNanos), seen.period(s.Name))
		window := collect.Window(period)
		for _, f := range forms(s.Kind) {
			least := collect.LatencyOperationsMin / window.Seconds()
			late := time.Duration(spacing * float64(period))
			query := strings.NewReplacer("{S", fmt.Sprintf("{run=%q,source=%q", m.Run, s.Name), "[W]", fmt.Sprintf("[%dms]", window.Milliseconds()),
				"[B]", fmt.Sprintf("[%dms] offset %dms", late.Milliseconds(), (window-late).Milliseconds()), "[L]", fmt.Sprintf("[%dms]", (fresh*period).Milliseconds()/2),
				"LEAST", fmt.Sprintf("%g", least)).Replace(f.query)
			all = append(all, Chart{
				Source: s, Title: f.title, Unit: f.unit, Query: query, Lookback: window, Averages: f.averages, Note: f.note,
			})
		}
		for _, c := range s.Charts {
			query, err := metric.Within(collect.RateQuery(c.Query, period), map[string]string{"run": m.Run, "source": s.Name})
			if err == nil { // else the plan warned of it
				all = append(all, Chart{Source: s, Title: c.Title, Unit: c.Unit, Query: query, Lookback: window, Averages: slices.Contains(timeUnits, c.Unit)})
			}
		}
	}
	return all
}

// timeUnits are the units of latencies, which are means of an interval if counters are read.
var timeUnits = []string{"s", "ms", "µs", "us", "ns"}

func forms(kind string) []form {
	switch kind {
	case target.SourceCeph:
		// Since Reef ceph-mgr has no counters of OSDs by default: those are in ceph-exporter. It has operations and bytes of pools.
		list := counters(pair{"ceph_osd_op_r", "ceph_osd_op_w"}, pair{"ceph_osd_op_r_out_bytes", "ceph_osd_op_w_in_bytes"},
			pair{"ceph_osd_op_r_latency_sum", "ceph_osd_op_w_latency_sum"}, pair{"ceph_osd_op_r_latency_count", "ceph_osd_op_w_latency_count"}, "")
		pools := counters(pair{"ceph_pool_rd", "ceph_pool_wr"}, pair{"ceph_pool_rd_bytes", "ceph_pool_wr_bytes"}, pair{}, pair{}, "")
		for i := range list[:2] {
			list[i].query += " or " + pools[i].query
		}
		return append(list, form{title: "recovery operations", unit: "1/s", query: "sum(rate(ceph_osd_recovery_ops{S}[W]) and last_over_time(ceph_osd_recovery_ops{S}[B]))", note: "Objects that Ceph recovered per second."})
	case target.SourceNode:
		// Devices that consist of others would be counted twice, and so would the paths of multipath NVMe.
		of := `,device!~"(dm-|md|sr|loop|drbd|bcache|zd)[0-9].*|nvme[0-9]+c[0-9]+n[0-9]+"`
		return counters(pair{"node_disk_reads_completed_total", "node_disk_writes_completed_total"}, pair{"node_disk_read_bytes_total", "node_disk_written_bytes_total"},
			pair{"node_disk_read_time_seconds_total", "node_disk_write_time_seconds_total"}, pair{"node_disk_reads_completed_total", "node_disk_writes_completed_total"}, of)
	case target.SourceWindows:
		p := "windows_logical_disk_"
		return counters(pair{p + "reads_total", p + "writes_total"}, pair{p + "read_bytes_total", p + "write_bytes_total"},
			pair{p + "read_latency_seconds_total", p + "write_latency_seconds_total"}, pair{p + "reads_total", p + "writes_total"}, `,volume!~"HarddiskVolume.*"`)
	case target.SourceNutanix:
		return append(rates("container"), categorized()...)
	case target.SourceNetApp:
		return append(rates("volume"), form{title: "disks zeroed", unit: "%", query: "100 * min(last_over_time(" + collect.Zeroed + "{S}[W]))",
			note: "Progress of the disk that is furthest behind; zeroing disks compete with the load."})
	case target.SourceVSphere:
		stores := rates("datastore")
		stores[2].note = "Means over the operations of an interval, in whole milliseconds; hosts with less than one are left out. A gap with few operations."
		return append(stores, disks(rates("disk"))...)
	}
	return nil
}

// categorized are the charts of what Prism derives from the operations of VMs.
func categorized() []form {
	last := func(name, of string) string { return "(last_over_time(" + name + `{S,object="vm"` + of + "}[W]))" }
	return []form{
		{title: "random operations", unit: "%", query: "100 * avg" + last(collect.RandomShare, ""),
			note: "Mean over the VMs of the run of the share that the storage categorizes as random."},
		{title: "working set", unit: "B", query: "sum by (direction)" + last(collect.WorkingSet, `,window="120s"`),
			note: "Bytes that the VMs of the run accessed within two minutes, estimated by the storage; union counts bytes that were read and written once."},
		{title: "oplog drain", unit: "B/s", query: "sum by (tier)" + last(collect.TierBytes, `,direction="drain"`),
			note: "Bytes of the VMs of the run that the storage moved from the oplog to each tier."},
	}
}

// pair has the names of reads and writes.
type pair struct{ read, write string }

// counters are the charts of counters: of names, or of labels of one name.
func counters(ops, bytes, sum, count pair, of string) []form {
	selected := func(name string) string { return name + "{S" + of + "}" }
	rate := func(name string) string { return "sum(rate(" + selected(name) + "[W]))" }
	// A counter has a rate once it has been read at the beginning of the window. Means need no such condition: both rates are too low alike.
	whole := func(name string) string {
		return "sum(rate(" + selected(name) + "[W]) and last_over_time(" + selected(name) + "[B]))"
	}
	both := func(read, write string) string {
		return `label_replace(` + read + `, "direction", "read", "", "") or label_replace(` + write + `, "direction", "write", "", "")`
	}
	mean := func(sum, count string) string { return "1e9 * " + rate(sum) + " / (" + rate(count) + " >= LEAST)" }
	return []form{
		{title: "operations", unit: "IOPS", query: both(whole(ops.read), whole(ops.write))},
		{title: "throughput", unit: "B/s", query: both(whole(bytes.read), whole(bytes.write))},
		{title: "latency", unit: "ns", query: both(mean(sum.read, count.read), mean(sum.write, count.write)), averages: true,
			note: "Means over the operations of an interval; a gap with few operations."},
	}
}

// rates are the charts of the metrics of package collect, of one kind of object.
func rates(object string) []form {
	last := func(name string) string { return "last_over_time(" + name + `{S,object="` + object + `"}[W])` }
	ops := last(collect.OperationsRate)
	latency := "last_over_time(" + collect.Latency + `{S,object="` + object + `"}[L])`
	return []form{
		{title: "operations", unit: "IOPS", query: "sum by (direction) (" + ops + ")"},
		{title: "throughput", unit: "B/s", query: "sum by (direction) (" + last(collect.BytesRate) + ")"},
		{title: "latency", unit: "ns", averages: true, note: "Means over the operations of an interval; a gap with few operations.",
			query: "1e9 * sum by (direction) (" + latency + " * " + ops + ") / sum by (direction) (" + ops + " and " + latency + ")"},
		{title: "CPU", unit: "%", query: `100 * max by (name) (last_over_time(` + collect.CPUUsage + `{S,object="host"}[W]))`},
	}
}

// disks are charts of virtual disks instead.
func disks(forms []form) []form {
	forms = forms[:3] // they have no CPU
	for i := range forms {
		forms[i].title = "virtual disks: " + forms[i].title
	}
	return forms
}

// Record collects how sources answered.
type Record map[string]*readings

type readings struct {
	tries, answers int
	ages           []float64
	paces          []pace // of the first series
}

// pace is how far samples of one series are apart.
type pace struct {
	latest result.Sample
	steps  []int64 // in nanoseconds
}

// Bounds of what is kept of a source.
const (
	agesMax  = 100_000
	pacesMax = 16
	stepsMax = 1000 // of each
)

// Add takes a sample of the record, if it is of a source.
func (r Record) Add(s *result.Sample) {
	name := s.Labels[collect.LabelSource]
	if name == "" {
		return
	}
	one := r[name]
	if one == nil {
		one = &readings{}
		r[name] = one
	}
	switch {
	case !strings.HasPrefix(s.Name, "bragg_source_"):
		one.step(s)
	case s.Name == collect.Age && len(one.ages) < agesMax:
		one.ages = append(one.ages, s.Value)
	case s.Name == collect.Up:
		one.tries++
		if s.Value == 1 {
			one.answers++
		}
	}
}

// step measures how far samples of a series are apart.
func (r *readings) step(s *result.Sample) {
	for i := range r.paces {
		p := &r.paces[i]
		if p.latest.Name != s.Name || !maps.Equal(p.latest.Labels, s.Labels) {
			continue
		}
		if s.AtNanos > p.latest.AtNanos && len(p.steps) < stepsMax {
			p.steps = append(p.steps, s.AtNanos-p.latest.AtNanos)
			p.latest.AtNanos = s.AtNanos
		}
		return
	}
	if len(r.paces) < pacesMax {
		r.paces = append(r.paces, pace{latest: *s})
	}
}

// period is how far samples of a typical series of a source are apart; 0 if unknown. A source with times of its own has no new sample in a reading if
// it did not measure since the one before. Some series of it may be rare.
func (r Record) period(source string) time.Duration {
	one := r[source]
	if one == nil {
		return 0
	}
	var medians []int64
	for _, p := range one.paces {
		if len(p.steps) > 0 {
			slices.Sort(p.steps)
			medians = append(medians, p.steps[len(p.steps)/2])
		}
	}
	if len(medians) == 0 {
		return 0
	}
	slices.Sort(medians)
	return time.Duration(medians[len(medians)/2]).Round(time.Second)
}

// Describe is one sentence on where numbers of a source come from, how often it was read and how old its values were.
func (r Record) Describe(s result.SourceInfo) string {
	text := fmt.Sprintf("Counters of source %s (%s), read every %s", s.Name, s.Kind, unit.FormatDuration(time.Duration(s.IntervalNanos)))
	one := r[s.Name]
	if one == nil {
		return text
	}
	if p := r.period(s.Name); p > time.Duration(s.IntervalNanos)*3/2 {
		text += "; it has new values every " + unit.FormatDuration(p)
	}
	if n := len(one.ages); n > 0 {
		slices.Sort(one.ages)
		text += fmt.Sprintf("; values were %s to %s old when read", age(one.ages[0]), age(one.ages[n-1]))
	}
	if one.answers < one.tries {
		text += fmt.Sprintf("; %d of %d readings failed", one.tries-one.answers, one.tries)
	}
	if s.TLS != "" {
		text += "; TLS " + s.TLS
	}
	return text
}

func age(seconds float64) string {
	return unit.FormatDuration(time.Duration(math.Round(seconds)) * time.Second)
}

// Result is the chart as a result without data.
func (c *Chart) Result(r Record, phase result.Window) result.Evaluated {
	return result.Evaluated{
		Name: "source " + c.Source.Name + " " + c.Title, Title: c.Source.Name + ": " + c.Title, Type: "metric", Unit: c.Unit, Unasked: true, Simulated: c.Source.Simulated,
		ReportGroup: Group, Hint: c.Note, Source: r.Describe(c.Source), Averages: c.Averages, FromNanos: phase.FromNanos, ToNanos: phase.ToNanos,
		Series: []result.Series{}, Stats: []result.Stats{},
	}
}
