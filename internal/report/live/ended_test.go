package live_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/report/live"
)

// A VM on which a load has ended is in no sum of rates any more, although nothing newer comes: the last ones are silent.
func TestLiveLeavesOutWhatHasEnded(t *testing.T) {
	from := func(vm string, second int64, operations uint64) interval.Interval {
		iv := liveInterval("OLTP", second, operations)
		iv.VM = vm
		return iv
	}
	ended := interval.Event{AtNanos: 8e9, Kind: interval.EventAnnotation, Workload: "OLTP", Instance: 1, Subject: "vm-2", Message: "ended on vm-2"}
	for name, c := range map[string]struct {
		end  func(l *live.View)
		want string
	}{
		"both run":            {func(*live.View) {}, "OLTP: 5.00k IOPS"},
		"its power was cut":   {func(l *live.View) { l.Event(ended) }, "OLTP: 1.00k IOPS"},
		"its last interval":   {func(l *live.View) { last := from("vm-2", 8, 4000); last.Final = true; l.Interval(last) }, "OLTP: 1.00k IOPS"},
		"another load's end":  {func(l *live.View) { e := ended; e.Instance = 2; l.Event(e) }, "OLTP: 5.00k IOPS"},
		"it is back":          {func(l *live.View) { l.Event(ended); l.Interval(from("vm-2", 8, 4000)) }, "OLTP: 5.00k IOPS"},
		"both have ended":     {func(l *live.View) { e := ended; l.Event(e); e.Subject = "vm-1"; l.Event(e) }, "OLTP: 0 IOPS, 0 B/s, p50 –, p99 –"},
		"seconds that follow": {func(l *live.View) { l.Event(ended); l.Interval(from("vm-1", 9, 3000)) }, "OLTP: 1.00k IOPS"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &screen{columns: 200}
				l := live.New(live.Options{Out: s, Size: s.size})
				l.Event(interval.Event{Kind: interval.EventPhaseStarted, Phase: "run"})
				for second := range int64(9) {
					l.Interval(from("vm-1", second, 1000))
					l.Interval(from("vm-2", second, 4000))
				}
				c.end(l)
				time.Sleep(11 * time.Second)
				synctest.Wait()
				if text := s.raw.String(); !strings.Contains(text, c.want) {
					t.Errorf("shown is\n%s\nwant %q", text, c.want)
				}
				l.Close()
			})
		})
	}
}

// TestLiveShowsNothingOld: rates of VMs that do not answer are not those of now, errors that were joined keep to one line, and a step
// that outlasts its plan says so instead of standing still.
func TestLiveShowsNothingOld(t *testing.T) {
	silent := interval.Event{AtNanos: 8e9, Kind: interval.EventAgentSilent, Subject: "vm-2", Message: "lost"}
	for name, c := range map[string]struct {
		end   func(l *live.View)
		sleep time.Duration
		want  string
	}{
		"one is silent": {func(l *live.View) { l.Event(silent) }, 11 * time.Second, "OLTP: 1.00k IOPS"},
		"both":          {func(l *live.View) { e := silent; l.Event(e); e.Subject = "vm-1"; l.Event(e) }, 11 * time.Second, "OLTP: – IOPS, –, p50 –, p99 –"},
		"nothing comes": {func(*live.View) {}, 21 * time.Second, "0:20  run, about 20 s left; OLTP: – IOPS"},
		"joined errors": {func(l *live.View) { l.Event(interval.Event{Kind: interval.EventLog, Message: "one\ntwo\n"}) }, 11 * time.Second, "one; two"},
		"a slow step": {func(l *live.View) {
			l.Event(interval.Event{AtNanos: 0, Kind: interval.EventStepStarted, StepID: 1, Step: "workload.Start", Phase: "run"})
		}, 11 * time.Second, "about 39 s left, this step is 9 s over estimate"},
		"VMs without agents": {func(l *live.View) {
			l.Event(interval.Event{AtNanos: 0, Kind: interval.EventStepStarted, StepID: 1, Step: "vm_group.PowerOn", Phase: "run"})
			for _, vm := range []string{"vm-1", "vm-2", "vm-3"} {
				l.Event(interval.Event{Kind: interval.EventOperationStarted, Operation: interval.OperationBoot, Subject: vm})
			}
			l.Event(interval.Event{Kind: interval.EventOperationEnded, Operation: interval.OperationBoot, Subject: "vm-2"})
		}, 11 * time.Second, "9 s over estimate, no answer yet from agents on vm-1 and vm-3"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &screen{columns: 300}
				l := live.New(live.Options{Out: s, Size: s.size})
				l.Plan(livePlan())
				l.Event(interval.Event{Kind: interval.EventPhaseStarted, Phase: "run"})
				for second := range int64(9) {
					for vm, n := range map[string]uint64{"vm-1": 1000, "vm-2": 4000} {
						iv := liveInterval("OLTP", second, n)
						iv.VM = vm
						l.Interval(iv)
					}
				}
				c.end(l)
				time.Sleep(c.sleep)
				synctest.Wait()
				if text := s.raw.String(); !strings.Contains(text, c.want) || strings.Contains(text, "\ufffd") {
					t.Errorf("shown is\n%s\nwant %q", text, c.want)
				}
				l.Close()
			})
		})
	}
}

// Rates of transactions are not IOPS, and they move no bytes of their own.
func TestLiveRatesHaveTheUnitOfTheirLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{columns: 200}
		l := live.New(live.Options{Out: s, Size: s.size})
		l.Plan(&plan.Plan{Workloads: []plan.Workload{{Name: "OLTP", Load: &load.Plan{Engine: interval.Engine{Operations: []string{"transaction"}}}}}})
		l.Event(interval.Event{Kind: interval.EventPhaseStarted, Phase: "run"})
		for second := range int64(9) {
			iv := liveInterval("OLTP", second, 1000)
			iv.Directions[interval.Read].Bytes = 0
			l.Interval(iv)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		l.Event(interval.Event{AtNanos: 11e9, Kind: interval.EventWorkloadEnd, Workload: "OLTP", Instance: 1})
		l.Close()
		for _, want := range []string{"OLTP: 1.00k operations/s, p50", "9,000 operations, p50"} {
			if text := s.raw.String(); !strings.Contains(text, want) {
				t.Errorf("shown is\n%s\nwant %q", text, want)
			}
		}
	})
}

// The prefill of a database counts no operations: it has a time, and not a rate of 0.
func TestLivePrefillWithoutOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{columns: 200}
		l := live.New(live.Options{Out: s, Size: s.size})
		l.Event(interval.Event{Kind: interval.EventPhaseStarted, Phase: "setup"})
		l.Event(interval.Event{Kind: interval.EventWorkloadStart, Workload: "OLTP", Instance: 1, Prefill: true})
		for second := range int64(9) {
			iv := liveInterval("OLTP", second, 0)
			iv.Prefill, iv.Directions = true, interval.Traffics{}
			l.Interval(iv)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		l.Event(interval.Event{AtNanos: 11e9, Kind: interval.EventWorkloadEnd, Workload: "OLTP", Instance: 1, Prefill: true})
		l.Close()
		text := s.raw.String()
		if !strings.Contains(text, "workload OLTP (prefill) ended after 11 s\n") || strings.Contains(text, "p50") || strings.Contains(text, "operations") {
			t.Errorf("shown is\n%s", text)
		}
	})
}
