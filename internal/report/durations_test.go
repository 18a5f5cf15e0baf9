package report_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report/page"
	"github.com/braggdev/bragg/internal/result"
)

// fixtureDurations are the operations of the fixture: four VMs that boot, and the node that is lost.
func fixtureDurations() *result.Durations {
	nan := result.Number(math.NaN())
	d := &result.Durations{}
	one := func(id int, op interval.Operation, subject string, from, took int64) {
		o := result.OperationTook{ID: id, Operation: op, Subject: subject, FromNanos: from, Phase: "run"}
		if to := from + took; took > 0 {
			o.ToNanos, o.TookNanos = &to, &took
		}
		d.Single = append(d.Single, o)
	}
	for i := range 4 {
		one(i+1, interval.OperationBoot, fmt.Sprintf("OLTP-%04d", i+1), 2*second, int64(i+1)*second/4)
	}
	one(5, interval.OperationNodeOff, "node-3", fixtureOff*second, 8*second)
	one(6, interval.OperationNodeOn, "node-3", fixtureOn*second, 12*second)
	one(7, interval.OperationVMRecovery, "OLTP-0003", fixtureOff*second, 0)
	d.Operations = []result.OperationStats{
		{Operation: interval.OperationBoot, Of: "VM", Count: 4, Min: 250e6, Median: 625e6, P95: nan, Max: 1e9},
		{Operation: interval.OperationNodeOff, Of: "node", Count: 1, Min: 8e9, Median: 8e9, P95: nan, Max: 8e9},
		{Operation: interval.OperationNodeOn, Of: "node", Count: 1, Min: 12e9, Median: 12e9, P95: nan, Max: 12e9},
		{Operation: interval.OperationVMRecovery, Of: "VM", Count: 1, Open: 1, Min: nan, Median: nan, P95: nan, Max: nan},
	}
	asked, askedTook := fixtureOn*second, (fixtureOn-fixtureOff)*second
	on, onTook := (fixtureOn+12)*second, 12*second
	back, backTook := (fixtureOn+90)*second, 78*second
	d.Recoveries = []result.Recovery{{Node: "node-3", Operation: interval.OperationNodeOff, VMs: 1, FromNanos: fixtureOff * second,
		Phases: []result.RecoveryPhase{{Name: "power-on command", AtNanos: &asked, TookNanos: &askedTook, Note: "the run left the node off until then"},
			{Name: "BMC on", AtNanos: &on, TookNanos: &onTook}, {Name: "host up", Unknown: "this target cannot tell"},
			{Name: "cluster ready", Unknown: "not waited for"}, {Name: "VM up", Unknown: "0 of 1 VMs responded again"},
			{Name: "first I/O", Unknown: "no load ran again on the VMs of the node"},
			{Name: "back to baseline", AtNanos: &back, TookNanos: &backTook, Note: "of the VMs on other nodes, to the second"}}}}
	return d
}

func TestPageDrawsDurations(t *testing.T) {
	var shown, without bytes.Buffer
	run := smallRun()
	if err := page.HTML(&shown, run); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`data-chart="durations-chart"`, `"id":"durations-chart"`, "All operations (7)", "unknown: not waited for",
		"boot until agent responds"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	run.Summary.Durations = nil
	if err := page.HTML(&without, run); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(without.String(), `id="durations"`) {
		t.Error("a run without operations has a section for them")
	}
}
