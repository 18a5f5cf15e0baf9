package analysis_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/impact"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/stat"
)

// did is one operation from and to a second; to < from is one without an end.
func did(id int, op interval.Operation, subject string, from, to float64) []interval.Event {
	e := interval.Event{AtNanos: int64(from * 1e9), Kind: interval.EventOperationStarted, Phase: "run", Operation: op, OperationID: id, Subject: subject}
	if to < from {
		return []interval.Event{e}
	}
	end := e
	end.AtNanos, end.Kind = int64(to*1e9), interval.EventOperationEnded
	return []interval.Event{e, end}
}

func TestOperationStatisticsByHand(t *testing.T) {
	var events []interval.Event
	for i := range 20 {
		events = append(events, did(i+1, interval.OperationClone, fmt.Sprint("vm", i), 1, 2+float64(i))...)
	}
	failed := did(21, interval.OperationClone, "vm20", 1, 500)
	failed[1].Error = "no space"
	late := did(22, interval.OperationBoot, "vm0", 30, 90)
	late[1].SpanNanos = 50e9
	events = append(append(append(events, failed...), late...), did(23, interval.OperationBoot, "vm1", 30, -1)...)
	events = append(events, interval.Event{AtNanos: 95e9, Kind: interval.EventOperationEnded, Operation: interval.OperationMigrate, OperationID: 99})
	call := did(24, interval.OperationMigrate, "", 40, 44) // without parts from the provider
	call[0].Count, call[1].Count = 3, 3
	d := analysis.NewTimeline(append(events, call...), 0).Durations()
	var lines []string
	for _, s := range d.Operations {
		lines = append(lines, fmt.Sprint(s.Operation, s.Of, s.Count, s.Failed, s.Unwatched, s.Open, s.Min/1e9, s.Median/1e9, s.P95/1e9, s.Max/1e9, s.UncertainNanos/1e9))
	}
	want := "clone VM 21 1 0 0 1 10.5 19 20 0\nboot VM 2 0 1 1 60 60 NaN 60 50\nmigrate call 1 0 0 0 4 4 NaN 4 0"
	got := strings.Join(lines, "\n")
	if normal(got) != normal(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(d.Single) != 24 {
		t.Errorf("%d operations", len(d.Single))
	}
	if d := analysis.NewTimeline(nil, 0).Durations(); d != nil {
		t.Errorf("without operations: %+v", d)
	}
}

// normal leaves out blanks, which Sprint sets only between some operands.
func normal(s string) string { return strings.ReplaceAll(s, " ", "") }

// node loses its power at 30 s, has it from 50 s, answers at 70 s; the cluster is ready at 75 s, the VM at 80 s. The load on
// the other VM falls to a third and is back at 90 s.
func nodeLoss(change func(events []interval.Event) []interval.Event) []result.Recovery {
	events := []interval.Event{
		{Kind: interval.EventPlaced, Subject: "a", Node: "n1"}, {Kind: interval.EventPlaced, Subject: "b", Node: "n2"},
		{Kind: interval.EventPhaseStarted, Phase: "run"},
		{Kind: interval.EventWorkloadStart, Phase: "run", Workload: "W", Instance: 1},
		{AtNanos: 150e9, Kind: interval.EventWorkloadEnd, Phase: "run", Workload: "W", Instance: 1},
		{AtNanos: 150e9, Kind: interval.EventPhaseEnded, Phase: "run"},
	}
	events = append(events, did(1, interval.OperationNodeOff, "n1", 30, 31)...)
	events = append(events, did(2, interval.OperationVMRecovery, "a", 30, 80)...)
	events = append(events, did(3, interval.OperationNodeOn, "n1", 45, 50)...)
	events = append(events, did(4, interval.OperationHostUp, "n1", 45, 70)...)
	events = append(events, did(5, interval.OperationClusterReady, "n1", 45, 75)...)
	if change != nil {
		events = change(events)
	}
	for id, at := range []int64{30e9, 45e9} {
		events = append(events, interval.Event{AtNanos: at, Kind: interval.EventStepStarted, Phase: "run", StepID: id + 1, Label: fmt.Sprint("step", id)},
			interval.Event{AtNanos: at + 5e9, Kind: interval.EventStepEnded, Phase: "run", StepID: id + 1, Label: fmt.Sprint("step", id)})
	}
	t := analysis.NewTimeline(events, 0)
	grid, r, costs := analysis.NewGrid(0, 150e9), analysis.NewRecoveries(t), impact.New(t)
	add := func(vm string, at, operations int) {
		h := &stat.Histogram{}
		h.RecordN(uint64(time.Millisecond), uint64(operations))
		iv := interval.Interval{Workload: "W", VM: vm, Instance: 1, StartNanos: int64(at) * 1e9, LengthNanos: 1e9, Final: at == 149}
		iv.Directions[interval.Read] = interval.Traffic{Operations: uint64(operations), Service: h}
		grid.Add(&iv)
		r.Add(&iv)
		costs.Add(&iv)
		costs.AddLatency(&iv)
	}
	for s := range 150 {
		rate := 300 + s%3
		if s >= 30 && s < 90 {
			rate = 100
		}
		add("b", s, rate)
		if s < 30 {
			add("a", s, 300)
		}
	}
	grid.Close()
	return r.List(impact.Back(costs.List(grid, &analysis.Stalls{})))
}

func recoveryText(r result.Recovery) string {
	var lines []string
	for _, p := range r.Phases {
		if p.AtNanos == nil {
			lines = append(lines, p.Name+" ? "+p.Unknown)
			continue
		}
		line := fmt.Sprintf("%s %g +%g", p.Name, float64(*p.AtNanos)/1e9, float64(*p.TookNanos)/1e9)
		if p.UncertainNanos > 0 {
			line += fmt.Sprintf(" -%g", float64(p.UncertainNanos)/1e9)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestRecoveryByHand(t *testing.T) {
	list := nodeLoss(nil)
	if len(list) != 1 || list[0].VMs != 1 || list[0].TookNanos != nil {
		t.Fatalf("recoveries %+v", list)
	}
	want := "power-on command 45 +15\nBMC on 50 +5\nhost up 70 +20\ncluster ready 75 +5\nVM up 80 +5\nfirst I/O ? no load ran again on the VMs of the node\nback to baseline 90 +10"
	if got := recoveryText(list[0]); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestRecoveryWithUncertainty: a milestone that was detected late is shown with its time and the uncertainty of that time.
func TestRecoveryWithUncertainty(t *testing.T) {
	for want, change := range map[string]func([]interval.Event) []interval.Event{
		"cluster ready 75 +5 -20": unasked(interval.OperationClusterReady, 20e9),
		"VM up 80 +5 -30":         unasked(interval.OperationVMRecovery, 30e9),
		"host up 70 +20 -1":       unasked(interval.OperationHostUp, 1e9),
	} {
		if got := recoveryText(nodeLoss(change)[0]); !strings.Contains(got+"\n", want+"\n") {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestRecoveryThatIsNotKnown(t *testing.T) {
	without := func(ops ...interval.Operation) func([]interval.Event) []interval.Event {
		return func(events []interval.Event) (kept []interval.Event) {
			for _, e := range events {
				gone := e.Kind == interval.EventWorkloadStart && len(ops) == 0
				for _, op := range ops {
					gone = gone || e.Operation == op
				}
				if !gone {
					kept = append(kept, e)
				}
			}
			return kept
		}
	}
	for want, change := range map[string]func([]interval.Event) []interval.Event{
		"host up ? not reported by this target":            without(interval.OperationHostUp),
		"VM up ? 0 of 1 VMs responded again":               without(interval.OperationVMRecovery),
		"BMC on ? node not powered on again":               without(interval.OperationNodeOn, interval.OperationHostUp, interval.OperationClusterReady),
		"back to baseline ? no load during the power loss": without(),
		"BMC on ? failed: no answer":                       failing(interval.OperationNodeOn),
	} {
		if got := recoveryText(nodeLoss(change)[0]); !strings.Contains(got+"\n", want+"\n") {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func unasked(op interval.Operation, span int64) func([]interval.Event) []interval.Event {
	return func(events []interval.Event) []interval.Event {
		for i := range events {
			if events[i].Operation == op && events[i].Kind == interval.EventOperationEnded {
				events[i].SpanNanos = span
			}
		}
		return events
	}
}

func failing(op interval.Operation) func([]interval.Event) []interval.Event {
	return func(events []interval.Event) []interval.Event {
		for i := range events {
			if events[i].Operation == op && events[i].Kind == interval.EventOperationEnded {
				events[i].Error = "no answer"
			}
		}
		return events
	}
}

// TestKnownStepsAddUp: whatever is known, the steps add up to the last milestone.
func TestKnownStepsAddUp(t *testing.T) {
	for _, r := range nodeLoss(nil) {
		sum, last := int64(0), int64(math.MinInt64)
		for _, p := range r.Phases {
			if p.AtNanos != nil {
				sum, last = sum+*p.TookNanos, max(last, *p.AtNanos)
			}
		}
		if sum != last-r.FromNanos {
			t.Errorf("steps add up to %d, the last is at %d", sum, last-r.FromNanos)
		}
	}
}
