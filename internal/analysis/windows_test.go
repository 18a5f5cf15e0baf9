package analysis_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/interval"
)

// script makes the events of a run phase from lines "from-to step [subject]" in seconds, with the labels that a plan gives: the
// workload that a step starts, else the step and its subject, and a number behind the second of the same.
func script(length int64, lines ...string) []interval.Event {
	events := []interval.Event{{AtNanos: 0, Kind: interval.EventPhaseStarted, Phase: "run"}}
	labels := map[string]int{}
	for i, line := range lines {
		var from, to float64
		var step, subject string
		if n, _ := fmt.Sscanf(line, "%f-%f %s %s", &from, &to, &step, &subject); n < 3 {
			panic(line)
		}
		e := interval.Event{AtNanos: int64(from * 1e9), Kind: interval.EventStepStarted, Phase: "run", Step: step, Subject: subject, StepID: i + 1}
		if strings.HasPrefix(step, "workload.") {
			e.Workload, e.Subject = subject, ""
		}
		if !strings.Contains(step, ".Wait") {
			e.Label = strings.TrimPrefix(step+" "+subject, "workload.Start ")
			if labels[e.Label]++; labels[e.Label] > 1 {
				e.Label = fmt.Sprintf("%s (%d)", e.Label, labels[e.Label])
			}
		}
		events = append(events, e)
		if to >= from {
			e.AtNanos, e.Kind = int64(to*1e9), interval.EventStepEnded
			events = append(events, e)
		}
	}
	return append(events, interval.Event{AtNanos: length * 1e9, Kind: interval.EventPhaseEnded, Phase: "run"})
}

func describe(events []interval.Event) string {
	var lines []string
	for _, w := range analysis.NewTimeline(events, 0).Windows() {
		lines = append(lines, fmt.Sprintf("%g-%g %s", float64(w.FromNanos)/1e9, float64(w.ToNanos)/1e9, w.Name))
	}
	return strings.Join(lines, "\n")
}

func TestWindowsByHand(t *testing.T) {
	for name, c := range map[string]struct {
		events []interval.Event
		want   string
	}{
		"nothing but waiting": {script(60, "0-60 test.Wait"), "0-60 run"},
		"load, failure, recovery": {
			script(900, "0-0.1 workload.Start OLTP", "0.1-300 test.Wait", "300-300.5 nodes.PowerOff node-2",
				"300.5-600 test.Wait", "600-660 nodes.PowerOn node-2", "660-900 workload.Wait OLTP"),
			"0-300 between OLTP and nodes.PowerOff node-2\n" +
				"300-600 between nodes.PowerOff node-2 and nodes.PowerOn node-2\n" +
				"600-660 during nodes.PowerOn node-2\n660-900 after nodes.PowerOn node-2",
		},
		"before the first": {script(100, "40-60 vm_group.Grow g"), "0-40 before vm_group.Grow g\n40-60 during vm_group.Grow g\n60-100 after vm_group.Grow g"},
		"same step twice": {
			script(100, "20-40 vm_group.Grow g", "60-80 vm_group.Grow g"),
			"0-20 before vm_group.Grow g\n20-40 during vm_group.Grow g\n" +
				"40-60 between vm_group.Grow g and vm_group.Grow g (2)\n60-80 during vm_group.Grow g (2)\n80-100 after vm_group.Grow g (2)",
		},
		"one workload after another": {
			script(90, "10-30 workload.Start read", "40-60 workload.Start read", "70-70.1 workload.Stop read"),
			"0-10 before read\n10-30 during read\n30-40 between read and read (2)\n40-60 during read (2)\n" +
				"60-70 between read (2) and workload.Stop read\n70-90 after workload.Stop read",
		},
		"a step that never ended": {script(100, "30--1 nodes.PowerOff n"), "0-30 before nodes.PowerOff n\n30-100 during nodes.PowerOff n"},
		"a short rehearsal":       {script(10, "3-3.5 nodes.PowerOff n"), "0-3 before nodes.PowerOff n\n3-3.5 during nodes.PowerOff n\n3.5-10 after nodes.PowerOff n"},
	} {
		if got := describe(c.events); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
	if w := analysis.NewTimeline(nil, 0).Windows(); w != nil {
		t.Errorf("windows of nothing: %v", w)
	}
}

// TestWindowsTileThePhase: whatever the steps do, also at the same time, windows cover the phase once, and there are
// not too many.
func TestWindowsTileThePhase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.Int64Range(1, 5000).Draw(t, "length")
		var lines []string
		for range rapid.IntRange(0, 150).Draw(t, "steps") {
			from := rapid.Float64Range(0, float64(length)).Draw(t, "from")
			to := from + rapid.Float64Range(0, float64(length)-from).Draw(t, "length")
			lines = append(lines, fmt.Sprintf("%f-%f %s %s", from, to,
				rapid.SampledFrom([]string{"nodes.PowerOff", "vm_group.Grow", "test.Wait"}).Draw(t, "step"),
				rapid.SampledFrom([]string{"a", "b"}).Draw(t, "subject")))
		}
		windows := analysis.NewTimeline(script(length, lines...), 0).Windows()
		at := int64(0)
		for _, w := range windows {
			if w.FromNanos != at || w.ToNanos <= w.FromNanos {
				t.Fatalf("window %+v does not begin at %d or is empty, in %+v", w, at, windows)
			}
			at = w.ToNanos
		}
		if at != length*1e9 || len(windows) > 101 {
			t.Fatalf("%d windows end at %d of %d", len(windows), at, length*1e9)
		}
	})
}

func TestTimelineOfAnInterruptedRun(t *testing.T) {
	tl := analysis.NewTimeline([]interval.Event{
		{AtNanos: 1, Kind: interval.EventPhaseStarted, Phase: "setup"},
		{AtNanos: 5, Kind: interval.EventPhaseEnded, Phase: "setup"},
		{AtNanos: 5, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 6, Kind: interval.EventWorkloadStart, Workload: "w", Group: "g", Instance: 1, Prefill: true},
		{AtNanos: 7, Kind: interval.EventWorkloadStart, Workload: "w", Group: "g", Instance: 2},
		{AtNanos: 9, Kind: interval.EventWorkloadEnd, Workload: "w", Group: "g", Instance: 1, Prefill: true},
		{AtNanos: 11, Kind: interval.EventLog},
	}, 0)
	if run, ok := tl.Phase("run"); !ok || run.ToNanos != 11 {
		t.Errorf("an open phase ends with the record: %+v", run)
	}
	starts := tl.StartsOf("w")
	if len(starts) != 1 || starts[0].FromNanos != 7 || starts[0].ToNanos != 11 || starts[0].Ended {
		t.Errorf("starts: %+v", starts)
	}
	if _, ok := tl.Phase("teardown"); ok {
		t.Error("there was no teardown")
	}
}

// Data that a program recorded after its last event counts: a load may run for minutes without events.
func TestTimelineOfADeadProgram(t *testing.T) {
	tl := analysis.NewTimeline([]interval.Event{
		{AtNanos: 5, Kind: interval.EventPhaseStarted, Phase: "run"},
		{AtNanos: 6, Kind: interval.EventWorkloadStart, Workload: "w", Group: "g", Instance: 1},
	}, 900)
	run, _ := tl.Phase("run")
	if tl.EndNanos != 900 || run.ToNanos != 900 || tl.StartsOf("w")[0].ToNanos != 900 {
		t.Errorf("ends at %d: %+v, %+v", tl.EndNanos, run, tl.StartsOf("w"))
	}
}
