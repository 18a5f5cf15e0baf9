package report_test

import (
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

func fixtureManifest(id string) result.Manifest {
	return result.Manifest{
		Format: result.FormatVersion, Run: id, Label: "cluster A, firmware 4.2",
		Created: time.Date(2025, 9, 21, 14, 15, 3, 0, time.UTC),
		Scenario: result.ScenarioInfo{
			Name: "node_failure", DisplayName: "Node failure under OLTP load",
			Summary: "Cuts the power of one node while a database load runs, and switches it on again.",
			Description: "<p>A steady <strong>OLTP</strong> load runs on every node. After five minutes the power of " +
				"node 3 is cut.</p><ul><li>How deep is the dip?</li><li>How long does it last?</li></ul>" +
				"<p>Rates stay the same all along, so the <em>response time</em> shows what users would feel.</p>",
			Tags: []string{"availability"}, Hash: "9f2c51d0a7be9f2c51d0a7be9f2c51d0a7be9f2c51d0a7be9f2c51d0a7be1234",
			Preset:    "small",
			Variables: map[string]string{"vms_per_node": "1", "runtime": "1140", "rate": "2000"},
			Origins:   map[string]string{"vms_per_node": "preset small", "runtime": "default", "rate": "command line"},
		},
		Target: result.TargetInfo{
			Provider: "local", Name: "local", Nodes: []result.NodeInfo{{ID: "node-1", Name: "node-1"}, {ID: "node-2", Name: "node-2"},
				{ID: "node-3", Name: "node-3"}, {ID: "node-4", Name: "node-4"}},
			Facts: [][2]string{{"replication factor", "2"}, {"compression", "off"}, {"firmware", "4.2.1"}},
		},
		Versions:    map[string]string{"bragg": "1.0.0", "go": "go1.26.8", "kernel": "6.1.0-18-amd64"},
		Environment: map[string]string{"cpu": "AMD EPYC 7543, 2 of 32 cores", "memory": "16 GiB", "file system": "ext4 on /dev/nvme0n1p2"},
		Engines:     map[string]interval.Engine{"OLTP": nativeEngine()},
		Seed:        11400714819323198485,
		CommandLine: []string{"bragg", "run", "node_failure", "--preset", "small", "--set", "rate=2000", "--label", "cluster A, firmware 4.2"},
	}
}

const fixturePlan = `{"estimate_ns": 1212000000000, "steps": [
 {"id": 1, "phase": "setup", "name": "vm_group.CloneFromTemplate", "line": 41, "duration_ns": 3000000000},
 {"id": 2, "phase": "setup", "name": "vm_group.PowerOn", "line": 43, "duration_ns": 1000000000},
 {"id": 3, "phase": "setup", "name": "workload.PrefillRun", "line": 45, "duration_ns": 60000000000},
 {"id": 4, "phase": "run", "name": "workload.Start", "line": 48, "duration_ns": 0},
 {"id": 5, "phase": "run", "name": "test.Wait", "line": 52, "duration_ns": 240000000000},
 {"id": 6, "phase": "run", "name": "nodes.PowerOff", "line": 54, "duration_ns": 10000000000},
 {"id": 7, "phase": "run", "name": "test.Wait", "line": 57, "duration_ns": 410000000000},
 {"id": 8, "phase": "run", "name": "nodes.PowerOn", "line": 59, "duration_ns": 60000000000},
 {"id": 9, "phase": "run", "name": "workload.Wait", "line": 62, "duration_ns": 480000000000},
 {"id": 10, "phase": "teardown", "name": "cluster.CleanUp", "line": 66, "duration_ns": 5000000000}]}`

func fixtureEvents() []interval.Event {
	var list []interval.Event
	step := func(id int, phase, name, subject string, from, to int64) {
		start := interval.Event{AtNanos: from * second, Kind: interval.EventStepStarted, Phase: phase, Step: name, StepID: id, Subject: subject}
		if phase == "run" && !strings.Contains(name, ".Wait") {
			start.Label = strings.TrimPrefix(name+" "+subject, "workload.Start ")
		}
		end := start
		end.AtNanos, end.Kind = to*second, interval.EventStepEnded
		list = append(list, start, end)
	}
	log := func(at int64, kind interval.EventKind, phase, message string) {
		list = append(list, interval.Event{AtNanos: at * second, Kind: kind, Phase: phase, Message: message})
	}
	log(0, interval.EventRunStarted, "", "")
	log(0, interval.EventPhaseStarted, "setup", "")
	step(1, "setup", "vm_group.CloneFromTemplate", "OLTP", 0, 2)
	step(2, "setup", "vm_group.PowerOn", "OLTP", 2, 3)
	step(3, "setup", "workload.PrefillRun", "OLTP", 4, 51)
	log(fixtureFrom, interval.EventPhaseStarted, "run", "")
	step(4, "run", "workload.Start", "OLTP", fixtureFrom, fixtureFrom+1)
	step(5, "run", "test.Wait", "", fixtureFrom+1, fixtureOff)
	step(6, "run", "nodes.PowerOff", "node-3", fixtureOff, fixtureOff+8)
	log(fixtureOff+9, interval.EventDisturbance, "run", "the agent of OLTP-0003 was lost")
	step(7, "run", "test.Wait", "", fixtureOff+8, fixtureOn)
	step(8, "run", "nodes.PowerOn", "node-3", fixtureOn, fixtureOn+42)
	step(9, "run", "workload.Wait", "OLTP", fixtureOn+42, fixtureEnd)
	log(fixtureEnd, interval.EventPhaseEnded, "run", "")
	log(fixtureEnd, interval.EventPhaseStarted, "teardown", "")
	step(10, "teardown", "cluster.CleanUp", "", fixtureEnd, fixtureEnd+9)
	log(fixtureEnd+12, interval.EventRunEnded, "", "")
	return list
}
