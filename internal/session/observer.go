package session

import (
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/plan"
)

// How long a silent agent is waited for when a load on it is to stop. A cut of ten minutes costs no number, whenever in a run it
// falls; in a rehearsal nobody wants to wait that long for an agent that will not come back.
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

// observer follows the agents of a run; it is a pool.Observer. What they do is recorded, and their counters are scraped.
type observer struct {
	*recorder
	*exporters
	run *carrier
}

func (o *observer) Prepared(w load.Workload, engine interval.Engine) { o.run.began(w, engine) }

func (o *observer) PowerCuts(vm string) int { return o.run.engine.PowerCuts(vm) }
