package vcsim

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/vpx"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// Counters count as ESXi does: averages of 20 seconds that end at multiples of 20 seconds of the vCenter's clock and do not change any
// more. The simulator's own are random, and new at each query.
type Counters struct {
	// Clock is that of the vCenter; nil: the clock of this machine.
	Clock func() time.Time
	// Delay is from the end of an interval until it is shown.
	Delay time.Duration
	// Value returns a counter that the simulator has no values of; false: no series. Nil: none has.
	Value func(c Count) (int64, bool)
}

// Count is one value of a counter.
type Count struct {
	Kind, Name string // "HostSystem" or "VirtualMachine", and its name
	Counter    string // "cpu.usage.average"
	Instance   string // "" for the aggregate
	End        time.Time
}

// interval is that of real-time counters.
const interval = 20 * time.Second

// Count replaces the counters of the vCenter.
func (s *Server) Count(c Counters) {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	registry := s.Model.Map()
	manager := registry.Get(*s.Model.ServiceContent.PerfManager).(*simulator.PerformanceManager)
	names := map[int32]string{}
	for _, one := range manager.PerfCounter {
		names[one.Key] = one.Name()
	}
	registry.Put(&counting{manager, c, names})
	registry.Put(&clock{registry.Get(vim25.ServiceInstance).(*simulator.ServiceInstance), c.Clock})
}

// clock is a vCenter with a clock of its own.
type clock struct {
	*simulator.ServiceInstance
	now func() time.Time
}

// CurrentTime is a call of the API.
func (c *clock) CurrentTime(*types.CurrentTime) soap.HasFault {
	return &methods.CurrentTimeBody{Res: &types.CurrentTimeResponse{Returnval: c.now()}}
}

// counting answers queries of counters.
type counting struct {
	*simulator.PerformanceManager
	counters Counters
	names    map[int32]string
}

// QueryPerf is a call of the API. It refuses a query with a counter that the vCenter does not have.
func (c *counting) QueryPerf(ctx *simulator.Context, q *types.QueryPerf) soap.HasFault {
	body := &methods.QueryPerfBody{Res: &types.QueryPerfResponse{}}
	newest := c.counters.Clock().Add(-c.counters.Delay).Truncate(interval)
	for _, spec := range q.QuerySpec {
		one, ok := ctx.Map.Get(spec.Entity).(mo.Entity)
		if !ok {
			return &methods.QueryPerfBody{Fault_: simulator.Fault("", &types.ManagedObjectNotFound{Obj: spec.Entity})}
		}
		var ends []time.Time
		for i := max(spec.MaxSample, 1); i > 0; i-- {
			ends = append(ends, newest.Add(-time.Duration(i-1)*interval))
		}
		answer := &types.PerfEntityMetric{PerfEntityMetricBase: types.PerfEntityMetricBase{Entity: spec.Entity}}
		for _, end := range ends {
			answer.SampleInfo = append(answer.SampleInfo, types.PerfSampleInfo{Timestamp: end, Interval: int32(interval / time.Second)})
		}
		for _, id := range spec.MetricId {
			name := c.names[id.CounterId]
			if name == "" {
				return &methods.QueryPerfBody{Fault_: simulator.Fault("", &types.InvalidArgument{InvalidProperty: "querySpec.metricId"})}
			}
			for _, instance := range instances(ctx, name, id.Instance) {
				of := Count{Kind: spec.Entity.Type, Name: one.Entity().Name, Counter: name, Instance: instance}
				if values := c.series(of, id.CounterId, ends); values != nil {
					answer.Value = append(answer.Value, &types.PerfMetricIntSeries{
						PerfMetricSeries: types.PerfMetricSeries{Id: types.PerfMetricId{CounterId: id.CounterId, Instance: instance}}, Value: values,
					})
				}
			}
		}
		if spec.Format == string(types.PerfFormatCsv) {
			body.Res.Returnval = append(body.Res.Returnval, text(answer))
		} else {
			body.Res.Returnval = append(body.Res.Returnval, answer)
		}
	}
	return body
}

// series has the value of a counter in each interval; nil: there is none.
func (c *counting) series(of Count, id int32, ends []time.Time) []int64 {
	var values []int64
	for _, end := range ends {
		v, ok := sampled(of.Kind, id, end)
		if of.Instance != "" {
			ok = false
		}
		if of.End = end; !ok && c.counters.Value != nil {
			v, ok = c.counters.Value(of)
		}
		if !ok {
			return nil
		}
		values = append(values, v)
	}
	return values
}

// sampled is the value that the simulator's data have for a counter of all objects of a kind in the interval that ended at end.
func sampled(kind string, id int32, end time.Time) (int64, bool) {
	points := vpx.MetricData[kind][id]
	if len(points) == 0 {
		return 0, false
	}
	return points[end.Unix()/int64(interval/time.Second)%int64(len(points))], true
}

// instances are those of a counter: "*" are all disks of a VM, or all datastores by the UUID that their address ends with.
func instances(ctx *simulator.Context, counter, wanted string) []string {
	switch {
	case wanted != "*":
		return []string{wanted}
	case strings.HasPrefix(counter, "datastore."):
		var all []string
		for _, one := range ctx.Map.All("Datastore") {
			all = append(all, path.Base(one.(*simulator.Datastore).Summary.Url))
		}
		return all
	}
	return []string{"scsi0:0"}
}

// text is an answer in CSV.
func text(m *types.PerfEntityMetric) *types.PerfEntityMetricCSV {
	list := &types.PerfEntityMetricCSV{PerfEntityMetricBase: m.PerfEntityMetricBase}
	var infos []string
	for _, one := range m.SampleInfo {
		infos = append(infos, fmt.Sprint(one.Interval), one.Timestamp.UTC().Format(time.RFC3339))
	}
	list.SampleInfoCSV = strings.Join(infos, ",")
	for _, one := range m.Value {
		series := one.(*types.PerfMetricIntSeries)
		var values []string
		for _, v := range series.Value {
			values = append(values, fmt.Sprint(v))
		}
		list.Value = append(list.Value, types.PerfMetricSeriesCSV{PerfMetricSeries: series.PerfMetricSeries, Value: strings.Join(values, ",")})
	}
	return list
}
