package traps

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/evaluate"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/target"
)

// scene is one run that a test makes up: a group of VMs with two disks each, and the loads that it drives on scripted storage, or for
// real on files. Jobs are compiled by the native engine; the record is written to a bundle and evaluated like that of any run.
type scene struct {
	t         *testing.T
	vms       int
	diskBytes int64
	folder    string // of real disks
	written   bool   // they have content
	plan      plan.Plan
	manifest  result.Manifest
	events    []interval.Event
	intervals []interval.Interval
	at        int64 // the end of the last load
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, vms: 2, diskBytes: 16 << 30}
	s.plan = plan.Plan{Format: plan.Format, Target: plan.Target{Provider: "ssh", Name: "hosts"}}
	for i := range s.vms {
		id := fmt.Sprintf("node-%d", i+1)
		s.plan.Target.Nodes = append(s.plan.Target.Nodes, target.Node{ID: id, Name: id, Address: "192.0.2.1", RAMBytes: 64 << 30})
	}
	s.manifest = result.Manifest{Run: "run", Created: time.Unix(1_700_000_000, 0), Engines: map[string]interval.Engine{},
		Target: result.TargetInfo{Provider: "ssh", Name: "hosts"}}
	return s
}

// jobFile is a job file with the usual options, and those of the text in place of them.
func jobFile(text string) string {
	return "[global]\nioengine=libaio\ndirect=1\ntime_based\nrate_process=poisson\n[job]\nfilename=/dev/sdb\n" +
		strings.Join(strings.Fields(text), "\n") + "\n"
}

// workload is the load of one VM.
func (s *scene) workload(name, job string, vm int) load.Workload {
	w := load.Workload{Name: name, Group: "g", VM: vmName(vm), Ordinal: vm, Instance: 1, Number: len(s.plan.Workloads), Generator: "native",
		ConfigName: "job.fio", Config: jobFile(job), Seed: 42, StartNanos: s.at}
	for _, disk := range []string{"sdb", "sdc"} {
		w.Devices = append(w.Devices, load.Device{Name: "/dev/" + disk, Path: filepath.Join(s.folder, w.VM+"-"+disk), SizeBytes: s.diskBytes})
	}
	return w
}

// planned compiles a workload and adds it to the plan, with a prefill of all that it uses.
func (s *scene) planned(name, job string) *plan.Workload {
	s.t.Helper()
	w := s.workload(name, job, 0)
	p, err := ioengine.New().Plan(w)
	if err != nil {
		s.t.Fatalf("plan %q: %v", job, err)
	}
	fill := load.Plan{}
	for device, bytes := range extent.PerDevice(p.Extents) {
		fill.Extents = append(fill.Extents, extent.Extent{Device: device, Length: bytes, Writes: true})
	}
	s.plan.Workloads = append(s.plan.Workloads, plan.Workload{Name: name, Group: "g", Generator: "native", Load: &p, Prefill: &fill})
	s.manifest.Engines[name] = p.Engine
	return &s.plan.Workloads[len(s.plan.Workloads)-1]
}

// prefill records that share of a prefill was written.
func (s *scene) prefill(name string, share float64) {
	w, _ := s.plan.Workload(name)
	iv := interval.Interval{Workload: name, Group: "g", Instance: 1, Prefill: true, StartNanos: s.at, LengthNanos: second, Final: true}
	t := &iv.Directions[interval.Write]
	t.Bytes = uint64(share * float64(extent.Bytes(w.Prefill.Extents)))
	t.Operations, t.Service = t.Bytes>>20, &stat.Histogram{}
	t.Service.RecordN(2e6, t.Operations)
	for vm := range s.vms {
		iv.VM = vmName(vm)
		s.intervals = append(s.intervals, iv)
	}
	s.at += second
}

// runs drives a load on scripted storage on all VMs after the last one, and returns its record.
func (s *scene) runs(name, job string, seconds int, device storage) []interval.Interval {
	s.t.Helper()
	w := s.planned(name, job)
	s.prefill(name, 1)
	return s.drives(w, job, seconds, device)
}

// drives is runs of a workload that is planned.
func (s *scene) drives(w *plan.Workload, job string, seconds int, device storage) []interval.Interval {
	s.begin(w.Name)
	first := len(s.intervals)
	for vm := range s.vms {
		one := s.workload(w.Name, job, vm)
		s.intervals = append(s.intervals, drive(&one, &w.Load.Jobs[0], w.Load.Engine.Loop, seconds, device)...)
	}
	s.at += int64(seconds) * second
	s.end(w.Name)
	return s.intervals[first:]
}

// database runs a load on scripted storage as the database of a server that starts a checkpoint after so much time.
func (s *scene) database(checkpointNanos int64, seconds int) {
	s.t.Helper()
	w := s.planned("load", writing)
	s.prefill("load", 1)
	w.Load.Engine.CheckpointNanos = checkpointNanos
	s.manifest.Engines["load"] = w.Load.Engine
	s.drives(w, writing, seconds, fast())
}

// really runs a load on the disks in the folder of the scene, by the native engine, on one VM.
func (s *scene) really(name, job string, runtime time.Duration) {
	s.t.Helper()
	s.vms, s.at = 1, s.at+second
	w := s.workload(name, job, 0)
	s.planned(name, job)
	if s.written {
		s.prefill(name, 1)
	}
	w.Runtime, w.StartNanos = runtime, 0
	instance, err := ioengine.New().Prepare(s.t.Context(), w)
	if err != nil {
		s.t.Fatal(err)
	}
	if engine := instance.(load.Describer).Engine(); !reflect.DeepEqual(engine, s.manifest.Engines[name]) {
		s.events = append(s.events, interval.Event{AtNanos: s.at, Kind: interval.EventEngine, Workload: name, Group: "g", Instance: 1, Subject: w.VM, Engine: &engine})
	}
	s.begin(name)
	start, end := s.at, s.at
	err = instance.Run(s.t.Context(), load.SinkFunc(func(iv interval.Interval) {
		iv.StartNanos += start
		end = max(end, iv.EndNanos())
		s.intervals = append(s.intervals, iv)
	}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.at = end
	s.end(name)
}

// disks makes real disks: files in a folder, with random content if they are written.
func (s *scene) disks(folder string, bytes int64, written bool) {
	s.t.Helper()
	s.folder, s.diskBytes, s.written = folder, bytes, written
	for _, disk := range []string{"sdb", "sdc"} {
		f, err := os.Create(filepath.Join(folder, vmName(0)+"-"+disk))
		if err != nil {
			s.t.Fatal(err)
		}
		if err := f.Truncate(bytes); err != nil {
			s.t.Fatal(err)
		}
		chunk := make([]byte, 1<<20)
		for at := int64(0); written && disk == "sdb" && at < bytes; at += int64(len(chunk)) {
			for i := range chunk {
				chunk[i] = byte(load.Draw(uint64(at), uint64(i)/8) >> (8 * (i % 8)))
			}
			if _, err := f.WriteAt(chunk, at); err != nil {
				s.t.Fatal(err)
			}
		}
		if err := f.Sync(); err != nil {
			s.t.Fatal(err)
		}
		_ = f.Close()
	}
}

func (s *scene) begin(name string) {
	s.events = append(s.events, interval.Event{AtNanos: s.at, Kind: interval.EventWorkloadStart, Phase: "run", Workload: name, Group: "g", Instance: 1})
}

func (s *scene) end(name string) {
	s.events = append(s.events, interval.Event{AtNanos: s.at, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: name, Group: "g", Instance: 1})
}

// evaluate writes the bundle and evaluates it against thresholds that all numbers of a trap meet.
func (s *scene) evaluate(results ...scenario.Result) result.Summary {
	s.t.Helper()
	group := plan.Group{Name: "g", RAMBytes: 4 << 30, Count: s.vms, CountFinal: s.vms}
	for vm := range s.vms {
		group.VMs = append(group.VMs, plan.VM{Name: vmName(vm), NodeID: s.plan.Target.Nodes[vm].ID})
	}
	s.plan.Groups = []plan.Group{group}
	dir := filepath.Join(s.t.TempDir(), "run")
	w, err := result.Create(dir, s.manifest)
	if err != nil {
		s.t.Fatal(err)
	}
	check := func(err error) {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	check(w.WritePlan(&s.plan))
	check(w.Event(interval.Event{Kind: interval.EventRunStarted}))
	check(w.Event(interval.Event{Kind: interval.EventPhaseStarted, Phase: "run"}))
	for _, e := range s.events {
		check(w.Event(e))
	}
	check(w.Event(interval.Event{AtNanos: s.at, Kind: interval.EventPhaseEnded, Phase: "run"}))
	check(w.Event(interval.Event{AtNanos: s.at, Kind: interval.EventRunEnded}))
	for i := range s.intervals {
		check(w.Interval(s.intervals[i]))
	}
	check(w.Close())
	b, err := result.Open(dir)
	check(err)
	defer b.Close()
	summary, err := evaluate.Run(context.Background(), evaluate.Input{Bundle: b, Scenario: &scenario.Scenario{Results: results}, Ended: result.EndedCompleted})
	check(err)
	return summary
}
