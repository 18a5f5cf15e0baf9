package vsphere_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/vsphere"
	"github.com/braggdev/bragg/internal/target"
)

const password = "hunter2-of-vcenter"

// counts is the performance manager of the simulator with values of our own: two intervals of each counter. Like a real one it refuses a query
// with an unknown counter.
type counts struct {
	*simulator.PerformanceManager
	at     time.Time
	values map[string][]int64 // by counter
	names  map[int32]string
	asked  map[string]bool
}

func (c *counts) QueryPerf(ctx *simulator.Context, req *types.QueryPerf) soap.HasFault {
	body := &methods.QueryPerfBody{Res: &types.QueryPerfResponse{}}
	for _, spec := range req.QuerySpec {
		m := &types.PerfEntityMetricCSV{PerfEntityMetricBase: types.PerfEntityMetricBase{Entity: spec.Entity}}
		m.SampleInfoCSV = fmt.Sprintf("20,%s,20,%s", c.at.UTC().Format(time.RFC3339), c.at.Add(20*time.Second).UTC().Format(time.RFC3339))
		for _, id := range spec.MetricId {
			name := c.names[id.CounterId]
			if name == "" {
				return &methods.QueryPerfBody{Fault_: simulator.Fault("", &types.InvalidArgument{InvalidProperty: "querySpec.metricId"})}
			}
			c.asked[name] = true
			instance := ""
			switch {
			case strings.HasPrefix(name, "virtualDisk."):
				instance = "scsi0:1"
			case strings.HasPrefix(name, "datastore."):
				instance = ctx.Map.Any("Datastore").Reference().Value
			}
			if values, ok := c.values[name]; ok {
				m.Value = append(m.Value, types.PerfMetricSeriesCSV{PerfMetricSeries: types.PerfMetricSeries{
					Id: types.PerfMetricId{CounterId: id.CounterId, Instance: instance}}, Value: fmt.Sprintf("%d,%d", values[0], values[1])})
			}
		}
		body.Res.Returnval = append(body.Res.Returnval, m)
	}
	return body
}

// vcenter starts a simulated vCenter with TLS that accepts one password. without lists counters that it does not have.
func vcenter(t *testing.T, values map[string][]int64, without ...string) (*counts, target.Source, *simulator.Server) {
	t.Helper()
	model := simulator.VPX()
	model.Host, model.Machine, model.ClusterHost = 0, 1, 2
	if err := model.Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Remove)
	registry := model.Map()
	c := &counts{at: time.Now().Add(-time.Minute).Truncate(time.Second), values: values, names: map[int32]string{}, asked: map[string]bool{}}
	c.PerformanceManager = registry.Get(*model.ServiceContent.PerfManager).(*simulator.PerformanceManager)
	c.PerfCounter = slices.DeleteFunc(slices.Clone(c.PerfCounter), func(info types.PerfCounterInfo) bool { return slices.Contains(without, info.Name()) })
	for _, info := range c.PerfCounter {
		c.names[info.Key] = info.Name()
	}
	if values != nil {
		registry.Put(c)
	}
	model.Service.Listen = &url.URL{Host: "127.0.0.1:0", User: url.UserPassword("viewer", password)}
	model.Service.TLS = new(tls.Config)
	server := model.Service.NewServer()
	t.Cleanup(server.Close)
	sum := sha256.Sum256(server.Certificate().Raw)
	return c, target.Source{Name: "vc", Kind: target.SourceVSphere, URL: "https://" + server.URL.Host, Fingerprint: hex.EncodeToString(sum[:]), Interval: 20 * time.Second}, server
}

func collector(t *testing.T, o collect.Options) collect.Collector {
	t.Helper()
	o.User, o.Secret = "viewer", password
	c, err := vsphere.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// find returns the values of a metric with labels, given as alternating names and values, in the order of time.
func find(r collect.Reading, name string, want ...string) (values []float64, at []time.Time) {
	for _, s := range r.Samples {
		fits := s.Name == name
		for i := 0; i+1 < len(want); i += 2 {
			fits = fits && s.Labels[want[i]] == want[i+1]
		}
		if fits {
			values, at = append(values, s.Value), append(at, s.At)
		}
	}
	return values, at
}

func TestCounters(t *testing.T) {
	c, source, _ := vcenter(t, map[string][]int64{
		"cpu.usage.average": {2500, 5000}, "cpu.ready.summation": {-1, 2000}, "net.received.average": {0, 3},
		"datastore.numberReadAveraged.average": {0, 40}, "datastore.totalReadLatency.average": {0, 3}, "datastore.read.average": {0, 160},
		"datastore.numberWriteAveraged.average": {9, 9}, "datastore.totalWriteLatency.average": {0, 0},
		"virtualDisk.numberReadAveraged.average": {0, 1}, "virtualDisk.readLatencyUS.latest": {0, 700},
	}, "virtualDisk.writeLatencyUS.latest", "mem.usage.average")
	r, err := collector(t, collect.Options{Source: source, IsVM: func(name string) bool { return name == "DC0_C0_RP0_VM0" }}).Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]struct {
		labels []string
		want   string
	}{
		collect.CPUUsage + " of a host":      {[]string{"object", "host", "name", "DC0_C0_H0", "node", "DC0_C0_H0"}, "[0.25 0.5]"},
		collect.CPUUsage + " of a VM":        {[]string{"object", "vm", "vm", "DC0_C0_RP0_VM0"}, "[0.25 0.5]"},
		collect.CPUReady:                     {[]string{"vm", "DC0_C0_RP0_VM0"}, "[0.1]"},
		collect.Network:                      {[]string{"object", "vm", "direction", "receive"}, "[0 3072]"},
		collect.OperationsRate:               {[]string{"object", "datastore", "name", "LocalDS_0", "node", "DC0_C0_H0", "direction", "read"}, "[0 40]"},
		collect.BytesRate:                    {[]string{"object", "datastore", "node", "DC0_C0_H0", "direction", "read"}, "[0 163840]"},
		collect.Latency + " without reads":   {[]string{"object", "datastore", "node", "DC0_C0_H0", "direction", "read"}, "[0.003]"},
		collect.Latency + " below a ms":      {[]string{"object", "datastore", "node", "DC0_C0_H0", "direction", "write"}, "[]"},
		collect.Latency + " of a disk":       {[]string{"object", "disk", "name", "scsi0:1", "vm", "DC0_C0_RP0_VM0"}, "[0.0007]"},
		collect.OperationsRate + " of disks": {[]string{"object", "disk", "vm", "DC0_C0_RP0_VM0", "direction", "read"}, "[0 1]"},
		collect.MemoryUsage:                  {nil, "[]"},
	} {
		name, _, _ := strings.Cut(what, " ")
		values, at := find(r, name, got.labels...)
		if fmt.Sprint(values) != got.want {
			t.Errorf("%s: got %v, want %s", what, values, got.want)
		}
		if len(at) == 2 && (!at[0].Equal(c.at) || !at[1].Equal(c.at.Add(20*time.Second))) {
			t.Errorf("%s: times %v, want those of the intervals from %v", what, at, c.at)
		}
	}
	if used, _ := find(r, collect.Size, "object", "datastore", "name", "LocalDS_0"); len(used) != 1 || r.Clock.IsZero() {
		t.Errorf("sizes %v, clock %v", used, r.Clock)
	}
	// The age of a reading is that of its newest interval, not of the sizes of datastores.
	if age, known := r.Age(time.Now()); !known || age < 30*time.Second {
		t.Errorf("values are %v old (known: %v), want those of an interval that ended 40 s ago", age, known)
	}
	if c.asked["virtualDisk.writeLatencyUS.latest"] || !c.asked["virtualDisk.readLatencyUS.latest"] {
		t.Errorf("requested %v", c.asked)
	}
}

// TestSimulatedSeries reads the simulator's own series: no VM but those of the run, and no virtual disks, which it does not count.
func TestSimulatedSeries(t *testing.T) {
	_, source, server := vcenter(t, nil)
	col := collector(t, collect.Options{Source: source, IsVM: func(string) bool { return false }})
	r, err := col.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if cpu, _ := find(r, collect.CPUUsage, "object", "host"); len(cpu) < 4 || slices.Max(cpu) <= 0 || slices.Max(cpu) > 1 {
		t.Errorf("CPU of hosts: %v", cpu)
	}
	if vms, _ := find(r, collect.CPUUsage, "object", "vm"); len(vms) > 0 {
		t.Errorf("VMs of others: %v", vms)
	}
	endSessions(t, server)
	if r, err = col.Collect(t.Context()); err != nil || len(r.Samples) == 0 {
		t.Errorf("after the session expired: %v", err)
	}
}

// endSessions ends the sessions of all others, as an idle timeout does.
func endSessions(t *testing.T, server *simulator.Server) {
	t.Helper()
	u := *server.URL
	c, err := govmomi.NewClient(t.Context(), &u, true)
	if err != nil {
		t.Fatal(err)
	}
	var m mo.SessionManager
	if err := property.DefaultCollector(c.Client).RetrieveOne(t.Context(), *c.ServiceContent.SessionManager, []string{"sessionList", "currentSession"}, &m); err != nil {
		t.Fatal(err)
	}
	ended := 0
	for _, s := range m.SessionList {
		if s.Key != m.CurrentSession.Key {
			if err := c.SessionManager.TerminateSession(t.Context(), []string{s.Key}); err != nil {
				t.Fatal(err)
			}
			ended++
		}
	}
	if ended != 1 {
		t.Errorf("ended %d sessions", ended)
	}
}

// TestRefusals: errors say why, and contain no password.
func TestRefusals(t *testing.T) {
	_, source, _ := vcenter(t, nil)
	for what, c := range map[string]struct {
		change func(*collect.Options)
		want   string
	}{
		"password":    {func(o *collect.Options) { o.Secret = "wrong-password" }, `source "vc": vSphere refused the user or password`},
		"certificate": {func(o *collect.Options) { o.Source.Fingerprint = "" }, `source "vc": its certificate is not trusted`},
		"connection":  {func(o *collect.Options) { o.Source.URL = "https://127.0.0.1:1" }, `source "vc": `},
	} {
		o := collect.Options{Source: source, User: "viewer", Secret: password}
		c.change(&o)
		_, err := vsphere.Open(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), o.Secret) {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}
