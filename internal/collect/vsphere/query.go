package vsphere

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/collect"
)

const (
	// entitiesMax is how many hosts or VMs one query has; vCenter refuses large answers.
	entitiesMax = 50
	// samplesMax is how many intervals a query returns: those since the reading before, at most an hour, which is what ESXi keeps.
	samplesMax = 180
)

// query reads the counters of objects. It requests only counters that the server has: one unknown counter fails a query.
func (r *reader) query(ctx context.Context, objects []object, wanted []counter, f found) ([]collect.Sample, error) {
	known := map[int32]counter{}
	var ids []types.PerfMetricId
	for _, c := range wanted {
		id, ok := r.counters[c.name]
		if !ok {
			continue
		}
		known[id] = c
		instance := ""
		if c.instances {
			instance = "*"
		}
		ids = append(ids, types.PerfMetricId{CounterId: id, Instance: instance})
	}
	if len(ids) == 0 {
		return nil, nil
	}
	var out []collect.Sample
	for batch := range slices.Chunk(objects, entitiesMax) {
		var specs []types.PerfQuerySpec
		byRef := map[types.ManagedObjectReference]object{}
		for _, o := range batch {
			byRef[o.ref] = o
			specs = append(specs, types.PerfQuerySpec{Entity: o.ref, MetricId: ids, IntervalId: int32(interval / time.Second), MaxSample: r.samples(),
				Format: string(types.PerfFormatCsv)})
		}
		answer, err := r.manager.Query(ctx, specs)
		if err != nil {
			return nil, err
		}
		for _, one := range answer {
			if metric, ok := one.(*types.PerfEntityMetricCSV); ok && byRef[metric.Entity].kind != "" {
				out = append(out, samplesOf(byRef[metric.Entity], metric, known, &f)...)
			}
		}
	}
	return out, nil
}

// samples is how many intervals a reading requests: those since the reading before and one more.
func (r *reader) samples() int32 {
	return min(int32(r.o.Source.Interval/interval)+2, samplesMax)
}

// samplesOf converts the series of one host or VM. A value of −1 means that vSphere has none.
func samplesOf(o object, m *types.PerfEntityMetricCSV, known map[int32]counter, f *found) []collect.Sample {
	times := timesOf(m.SampleInfoCSV)
	series := map[string][]int64{} // by counter and instance
	for _, s := range m.Value {
		series[known[s.Id.CounterId].name+" "+s.Id.Instance] = valuesOf(s.Value)
	}
	var out []collect.Sample
	for _, s := range m.Value {
		c, wanted := known[s.Id.CounterId]
		labels, read := labelsOf(o, c, s.Id.Instance, f)
		if !wanted || !read {
			continue
		}
		values := series[c.name+" "+s.Id.Instance]
		for i, v := range values[:min(len(values), len(times))] {
			if v < 0 || c.operations != "" && !measured(v, series[c.operations+" "+s.Id.Instance], i) {
				continue
			}
			value := collect.Scale(float64(v), c.factor)
			if c.perCPU {
				value /= float64(o.cpus)
			}
			out = append(out, collect.Sample{Name: c.metric, Labels: labels, Value: value, At: times[i]})
		}
	}
	return out
}

// timesOf reads the ends of intervals: "20,2026-01-01T00:00:20Z,20,2026-01-01T00:00:40Z".
func timesOf(csv string) []time.Time {
	var out []time.Time
	fields := strings.Split(csv, ",")
	for i := 1; i < len(fields); i += 2 {
		at, err := time.Parse(time.RFC3339, fields[i])
		if err != nil {
			return out
		}
		out = append(out, at)
	}
	return out
}

// valuesOf reads a series; a value that is not a number is unknown.
func valuesOf(csv string) []int64 {
	if csv == "" {
		return nil
	}
	fields := strings.Split(csv, ",")
	out := make([]int64, len(fields))
	for i, field := range fields {
		var err error
		if out[i], err = strconv.ParseInt(field, 10, 64); err != nil {
			out[i] = -1
		}
	}
	return out
}

// measured reports whether a latency is one: not with too few operations, and not 0, which is a latency below the counter's resolution.
func measured(latency int64, operations []int64, i int) bool {
	return latency > 0 && i < len(operations) && !collect.FewOperations(float64(operations[i]), interval.Seconds())
}
