package session

import (
	"fmt"
	"reflect"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
)

// Timeouts for stopping a load on a silent agent. A network outage of ten minutes loses no data, wherever in a run it
// occurs. A rehearsal uses a shorter timeout, because waiting that long for a dead agent would defeat its purpose.
const (
	silentForRun       = 11 * time.Minute
	silentForRehearsal = 2 * time.Minute
)

func silentFor(p *plan.Plan) time.Duration {
	if p.Rehearsal != nil {
		return silentForRehearsal
	}
	return silentForRun
}

// observer follows the agents of a run; it is a pool.Observer. It records their events and scrapes their counters.
type observer struct {
	*recorder
	*exporters
	run *execution
}

// Prepared records the engine of a load on one VM if it differs from the plan.
func (o *observer) Prepared(w load.Workload, engine interval.Engine) {
	planned := o.run.Plan.Engine(w.Name, w.Prefill)
	if w.Remove || engine.IsZero() || reflect.DeepEqual(engine, planned) {
		return
	}
	what := w.Name
	if w.Prefill {
		what = "the prefill for " + w.Name
	}
	message := fmt.Sprintf("%s on %s runs with %q instead of %q", what, w.VM, engine, planned)
	if planned.Version == "" && planned.Name == engine.Name { // a program that is on the VM only
		message = fmt.Sprintf("%s on %s runs with %q", what, w.VM, engine)
	}
	o.Event(interval.Event{
		AtNanos: o.now(), Kind: interval.EventEngine, Workload: w.Name, Instance: w.Instance, Prefill: w.Prefill,
		Group: w.Group, Subject: w.VM, Engine: &engine,
		Message: message,
	})
}

func (o *observer) PowerCuts(vm string) int { return o.run.engine.PowerCuts(vm) }
