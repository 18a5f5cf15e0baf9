// Package resulttest makes bundles for tests and benchmarks: any number of VMs over any time, with the shape of a real run. The
// output depends only on the parameters.
package resulttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

// Params are the size of the run. The comment of a field is its default.
type Params struct {
	VMs      int           // 4
	Duration time.Duration // of the run phase: 60 s
	IOPS     int           // of each VM: 500
	Nodes    int           // 4
	Seed     uint64
}

const (
	// Group and Workload name the only group and workload of the run.
	Group    = "oltp"
	Workload = "OLTP"
	// poolSize is how many different seconds there are. Generating each second separately would take longer than the code under
	// test.
	poolSize = 1021
)

// Manifest returns the manifest of a generated run.
func Manifest(p Params) result.Manifest {
	p = p.defaults()
	m := result.Manifest{
		Run: fmt.Sprintf("20260304-050607-%04x", p.Seed&0xffff), Created: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Scenario: result.ScenarioInfo{
			Name: "node_failure", DisplayName: "Node failure", Hash: "0123456789abcdef",
			Summary: "An OLTP load on every node while one node loses its power.",
		},
		Target:      result.TargetInfo{Provider: "fake", Name: fmt.Sprintf("fake:%d", p.Nodes), Simulated: true},
		Versions:    map[string]string{"bragg": "test"},
		Environment: map[string]string{"cpu": "made up"},
		Engines:     map[string]interval.Engine{Workload: {Name: "resulttest", Loop: interval.LoopOpen}},
		Seed:        p.Seed,
	}
	for n := range p.Nodes {
		id := fmt.Sprintf("node-%d", n+1)
		m.Target.Nodes = append(m.Target.Nodes, result.NodeInfo{ID: id, Name: id})
	}
	return m
}

func (p Params) defaults() Params {
	if p.VMs == 0 {
		p.VMs = 4
	}
	if p.Duration == 0 {
		p.Duration = time.Minute
	}
	if p.IOPS == 0 {
		p.IOPS = 500
	}
	if p.Nodes == 0 {
		p.Nodes = 4
	}
	return p
}

// Write writes the record of a run to w: an OLTP load at a rate on every VM; after a third of the time, a node loses its power
// and its VMs are down for a tenth of the time, during which the others are slower. The caller seals.
func Write(w *result.Writer, p Params) error {
	p = p.defaults()
	if err := writeEvents(w, p); err != nil {
		return err
	}
	pool := newPool(p)
	random := rand.New(rand.NewPCG(p.Seed, 1))
	seconds := int64(p.Duration / time.Second)
	from, to := outage(seconds)
	for s := range seconds {
		hurt := s >= from && s < to
		for vm := range p.VMs {
			if hurt && vm%p.Nodes == 1 {
				continue
			}
			iv := pool.second(random.IntN(poolSize), hurt)
			iv.VM = VM(vm)
			iv.Sequence, iv.StartNanos, iv.LengthNanos = s, s*1e9+int64(vm)*1e6, 1e9
			iv.Final = s == seconds-1
			if err := w.Interval(iv); err != nil {
				return err
			}
		}
		if s%5 == 0 {
			if err := w.Sample(samples(p, s, hurt)...); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil { // as in a run
			return err
		}
	}
	return nil
}

// VM names VM number i.
func VM(i int) string { return fmt.Sprintf("%s-%04d", Group, i+1) }

func outage(seconds int64) (from, to int64) { return seconds / 3, seconds/3 + seconds/10 }

func writeEvents(w *result.Writer, p Params) error {
	seconds := int64(p.Duration / time.Second)
	from, to := outage(seconds)
	from, to, end := from*1e9, to*1e9, seconds*1e9
	events := []interval.Event{{Kind: interval.EventRunStarted}}
	for vm := range p.VMs {
		events = append(events, interval.Event{Kind: interval.EventPlaced, Subject: VM(vm), Group: Group,
			Node: fmt.Sprintf("node-%d", vm%p.Nodes+1)})
	}
	step := func(id int, name, label, subject string, from, to int64) {
		e := interval.Event{AtNanos: from, Kind: interval.EventStepStarted, Phase: "run", Step: name, Label: label, StepID: id, Subject: subject}
		events = append(events, e)
		e.AtNanos, e.Kind = to, interval.EventStepEnded
		events = append(events, e)
	}
	events = append(events, interval.Event{Kind: interval.EventPhaseStarted, Phase: "run"},
		interval.Event{Kind: interval.EventWorkloadStart, Phase: "run", Workload: Workload, Group: Group, Instance: 1})
	step(1, "workload.Start", Workload, "", 0, 0)
	step(2, "test.Wait", "", "", 0, from)
	step(3, "nodes.PowerOff", "nodes.PowerOff 1", "node-2", from, from+5e8)
	step(4, "test.Wait", "", "", from+5e8, to)
	step(5, "nodes.PowerOn", "nodes.PowerOn 1", "node-2", to, to+min(30e9, (end-to)/10))
	events = append(events,
		interval.Event{AtNanos: end, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: Workload, Group: Group, Instance: 1},
		interval.Event{AtNanos: end, Kind: interval.EventPhaseEnded, Phase: "run"},
		interval.Event{AtNanos: end, Kind: interval.EventRunEnded})
	for _, e := range events {
		if err := w.Event(e); err != nil {
			return err
		}
	}
	return nil
}

// samples are a reading of every node and the disk counters of every VM.
func samples(p Params, s int64, hurt bool) []result.Sample {
	var list []result.Sample
	for n := range p.Nodes {
		if hurt && n == 1 {
			continue
		}
		node := fmt.Sprintf("node-%d", n+1)
		for name, value := range map[string]float64{
			"CpuUsage.Avg.Megahertz": 9000 + 500*math.Sin(float64(s)/60), "NetReceived.Avg.KilobytesPerSecond": 2000,
		} {
			list = append(list, result.Sample{AtNanos: s * 1e9, Name: "bragg_node_value",
				Labels: map[string]string{"node": node, "metric": name, "simulated": "true"}, Value: value})
		}
	}
	for vm := range p.VMs {
		if hurt && vm%p.Nodes == 1 {
			continue
		}
		for _, name := range []string{"node_disk_reads_completed_total", "node_disk_writes_completed_total"} {
			list = append(list, result.Sample{AtNanos: s * 1e9, Name: name, Value: float64(s) * float64(p.IOPS) / 2,
				Labels: map[string]string{"vm": VM(vm), "vm_group": Group, "instance": VM(vm), "device": "sdb"}})
		}
	}
	return list
}

// pool holds seconds to choose from: normal ones and those of an outage.
type pool struct{ calm, hurt []interval.Interval }

func newPool(p Params) *pool {
	random := rand.New(rand.NewPCG(p.Seed, 2))
	out := &pool{}
	for range poolSize {
		out.calm = append(out.calm, makeSecond(random, p.IOPS, 1))
		out.hurt = append(out.hurt, makeSecond(random, p.IOPS, 3))
	}
	return out
}

func (p *pool) second(i int, hurt bool) interval.Interval {
	if hurt {
		return p.hurt[i]
	}
	return p.calm[i]
}

// makeSecond draws latencies from a log-normal distribution around 400 µs, which is what flash behind a network shows.
func makeSecond(random *rand.Rand, iops int, slower float64) interval.Interval {
	iv := interval.Interval{Workload: Workload, Group: Group, Instance: 1, Due: uint64(iops), CPUNanos: 9_000_000}
	for d, share := range []float64{0.7, 0.3} {
		t := &iv.Directions[d]
		t.Service, t.Response = &stat.Histogram{}, &stat.Histogram{}
		t.Operations = uint64(float64(iops) * share * (0.97 + 0.06*random.Float64()))
		t.Bytes = t.Operations * 8192
		for range t.Operations {
			service := 400_000 * slower * math.Exp(0.5*random.NormFloat64())
			t.Service.Record(uint64(service))
			t.Response.Record(uint64(service + 20_000*random.ExpFloat64()))
		}
	}
	return iv
}
