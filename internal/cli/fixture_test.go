package cli_test

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// makeRun is the script command `makerun ID [label=L] [state=sealed|running|live|aborted] [minute=N] [verdict=V] [target=NAME]
// [iops=N] [p99=MICROSECONDS]`: it writes a small bundle into the runs folder that the script's environment gives. A target comes from a file tg2.yml.
func makeRun(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: makerun ID [key=value…]")
	}
	options := map[string]string{"state": "sealed", "minute": "0", "verdict": "PASS"}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		options[key] = value
	}
	minute, err := time.ParseDuration(options["minute"] + "m")
	ts.Check(err)
	runs := options["runs"]
	if runs == "" {
		runs = filepath.Join(ts.Getenv("XDG_STATE_HOME"), "bragg", "runs")
	}
	info := result.TargetInfo{Provider: "fake", Name: "fake:2", Simulated: true, Nodes: []result.NodeInfo{{ID: "1"}, {ID: "2"}}}
	var command []string
	if name := options["target"]; name != "" {
		info = result.TargetInfo{Provider: "local", Name: name, Nodes: []result.NodeInfo{{ID: "1", Name: "n1"}}}
		command = []string{"bragg", "run", "four_corners", "--target", "tg2.yml", "--label", options["label"], "--runs", "../acme/runs"}
	}
	w, err := result.Create(filepath.Join(ts.MkAbs(runs), args[0]), result.Manifest{
		Run: args[0], Label: options["label"], Created: time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC).Add(minute), Seed: 7,
		Scenario: result.ScenarioInfo{
			Name: "four_corners", Summary: "the corners", Variables: map[string]string{"runtime_secs": "20", "disks": "4"},
			Origins: map[string]string{"runtime_secs": "command line", "disks": "default"},
		},
		Target: info, CommandLine: command, Environment: map[string]string{"host": "ox"},
		Rehearsal: &result.Rehearsal{Asked: time.Minute, TimeFactor: 0.1},
		Engines:   map[string]interval.Engine{"Random Read": {Name: "native", Backends: []string{"psync"}}},
	})
	ts.Check(err)
	ts.Check(w.WritePlan(map[string]any{"groups": []map[string]string{{"name": "workers"}, {"name": "clients"}}}))
	if options["state"] == "running" {
		ts.Check(w.Close())
		return
	}
	if options["state"] == "live" {
		for _, e := range []interval.Event{
			{AtNanos: 1, Kind: interval.EventStepStarted, Phase: "setup", Step: "vm_group.PowerOn", StepID: 1, Group: "g"},
			{AtNanos: 2, Kind: interval.EventStepEnded, Phase: "setup", Step: "vm_group.PowerOn", StepID: 1, Group: "g"},
			{AtNanos: 3, Kind: interval.EventWorkloadStart, Phase: "run", Workload: "Random Read", Instance: 1},
			{AtNanos: 4, Kind: interval.EventStepStarted, Phase: "run", Step: "test.Wait", StepID: 2},
		} {
			ts.Check(w.Event(e))
		}
		ts.Check(w.Flush())
		ts.Defer(func() { ts.Check(w.Close()) })
		return
	}
	ended := "completed"
	if options["state"] == "aborted" {
		ended = result.EndedAborted
	}
	ts.Check(w.Seal(result.Summary{Verdict: result.Verdict(options["verdict"]), Reason: "all thresholds hold", Ended: ended,
		Duration: int64(90 * time.Second), Results: madeResults(ts, options)}))
}

// madeResults are a result of each type that the options name.
func madeResults(ts *testscript.TestScript, options map[string]string) []result.Evaluated {
	var list []result.Evaluated
	unknown := result.Number(math.NaN())
	add := func(title, kind, unitName string, of result.Distribution) {
		list = append(list, result.Evaluated{Name: title, Title: title, Type: kind, Unit: unitName, ToNanos: 90e9,
			Stats: []result.Stats{{Series: "all", Count: 90, Distribution: of}}})
	}
	number := func(key string, factor float64) (result.Number, bool) {
		if options[key] == "" {
			return unknown, false
		}
		v, err := strconv.ParseFloat(options[key], 64)
		ts.Check(err)
		return result.Number(v * factor), true
	}
	if v, ok := number("iops", 1); ok {
		add("Random Read IOPS", "iops", "IOPS", result.Distribution{Mean: v, Median: v, P95: unknown, P99: unknown, P999: unknown, Max: v, Min: v, CV: 0.1})
	}
	if v, ok := number("p99", 1e3); ok {
		add("Random Read Latency", "latency", "ns", result.Distribution{Mean: v / 4, Median: v / 5, P95: v / 2, P99: v, P999: v * 3, Max: v * 9, Min: v / 9, CV: 1})
	}
	return list
}
