package netapp

import (
	"maps"
	"slices"

	"github.com/braggdev/bragg/internal/collect"
)

// flow has the counters of one direction, under the names of ZAPI and of REST.
type flow struct {
	direction          string
	ops, data, latency [2]string
}

var flows = []flow{
	{collect.Read, [2]string{"read_ops", "total_read_ops"}, [2]string{"read_data", "bytes_read"}, [2]string{"read_latency", "read_latency"}},
	{collect.Write, [2]string{"write_ops", "total_write_ops"}, [2]string{"write_data", "bytes_written"}, [2]string{"write_latency", "write_latency"}},
	{collect.Other, [2]string{"other_ops", "total_other_ops"}, [2]string{}, [2]string{"other_latency", "other_latency"}},
}

// busy are the counters of the CPU of nodes: the mean of all processors, else the time in which any was busy.
var busy = []string{"avg_processor_busy", "average_processor_busy_percent", "cpu_busy"}

// wanted lists the counters of an object that a schema has, with their base counters.
func wanted(o object, s schema) []string {
	names := map[string]bool{}
	add := func(list ...string) {
		for _, name := range list {
			if info, ok := s[name]; ok {
				names[name] = true
				if info.base != "" {
					names[info.base] = true
				}
			}
		}
	}
	if o == nodes {
		add(busy...)
	} else {
		for _, f := range flows {
			add(f.ops[:]...)
			add(f.data[:]...)
			add(f.latency[:]...)
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// volumeObject is the name of a volume for counters.
func volumeObject(r row) string { return "volume " + r.key }

// volumeSamples are the samples of one volume: totals, and rates and latencies since the reading before.
func volumeSamples(c *collect.Counters, r row, s schema) []collect.Sample {
	object := volumeObject(r)
	key := func(name string) string { return collect.Key(object, name) }
	c.Add(object, r.values, r.at)
	var out []collect.Sample
	for _, f := range flows {
		labels := maps.Clone(r.labels)
		labels[collect.LabelDirection] = f.direction
		put := func(name string, factor float64) func(value float64, ok bool) {
			return func(value float64, ok bool) {
				if ok {
					out = append(out, collect.Sample{Name: name, Labels: labels, Value: collect.Scale(value, factor), At: r.at})
				}
			}
		}
		ops, data, latency := first(f.ops, s), first(f.data, s), first(f.latency, s)
		put(collect.Operations, 1)(c.Total(key(ops)))
		put(collect.OperationsRate, 1)(c.Rate(key(ops)))
		put(collect.Bytes, s[data].factor)(c.Total(key(data)))
		put(collect.BytesRate, s[data].factor)(c.Rate(key(data)))
		put(collect.OperationTime, s[latency].factor)(c.Total(key(latency)))
		put(collect.Latency, s[latency].factor)(c.Mean(key(latency), key(s[latency].base), collect.LatencyOperationsMin))
	}
	return out
}

// first is the name that a schema has.
func first(names [2]string, s schema) string {
	if _, ok := s[names[0]]; ok {
		return names[0]
	}
	return names[1]
}

// nodeSamples is the CPU use of one node.
func nodeSamples(c *collect.Counters, r row, s schema) []collect.Sample {
	object := "node " + r.key
	key := func(name string) string { return collect.Key(object, name) }
	c.Add(object, r.values, r.at)
	for _, name := range busy {
		if ratio, ok := c.Mean(key(name), key(s[name].base), 1); ok {
			return []collect.Sample{{Name: collect.CPUUsage, Labels: r.labels, Value: ratio, At: r.at}}
		}
	}
	return nil
}
