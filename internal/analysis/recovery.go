package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// The milestones of a recovery, in the order in which they are usually reached.
const (
	phaseCommand  = "power-on command" // until then the run keeps it off
	phaseBMC      = "BMC on"
	phaseHost     = "host up"
	phaseCluster  = "cluster ready"
	phaseVM       = "VM up"
	phaseFirstIO  = "first I/O"
	phaseBaseline = "back to baseline"
)

// Recoveries finds the recovery after each power loss of a node. Call List after Add has received all intervals.
type Recoveries struct {
	timeline   *Timeline
	operations []result.OperationTook
	losses     []powerLoss
}

type powerLoss struct {
	operation *result.OperationTook
	until     int64           // the next time the node loses power, or the end of the record
	vms       map[string]bool // that were on the node
	resumed   map[string]int64
}

// NewRecoveries finds the power losses that the run caused.
func NewRecoveries(t *Timeline) *Recoveries {
	r := &Recoveries{timeline: t, operations: t.Operations()}
	for i := range r.operations {
		o := &r.operations[i]
		if (o.Operation != interval.OperationNodeOff && o.Operation != interval.OperationNodeShutdown) || o.Phase != "run" ||
			o.ToNanos == nil || o.Error != "" {
			continue
		}
		for k := range r.losses {
			if r.losses[k].operation.Subject == o.Subject {
				r.losses[k].until = min(r.losses[k].until, o.FromNanos)
			}
		}
		r.losses = append(r.losses, powerLoss{operation: o, until: t.EndNanos, vms: t.VMsOn(o.Subject, o.FromNanos), resumed: map[string]int64{}})
	}
	return r
}

// VMsOn returns the VMs that are on a node at a given time.
func (t *Timeline) VMsOn(node string, at int64) map[string]bool {
	on := map[string]bool{}
	for _, e := range t.events {
		switch {
		case e.AtNanos > at:
			return on
		case e.Kind == interval.EventPlaced && e.Node == node:
			on[e.Subject] = true
		case e.Kind == interval.EventPlaced:
			delete(on, e.Subject)
		}
	}
	return on
}

// Add takes one interval.
func (r *Recoveries) Add(iv *interval.Interval) {
	for i := range r.losses {
		c := &r.losses[i]
		if !c.vms[iv.VM] || iv.StartNanos < *c.operation.ToNanos || iv.StartNanos >= c.until {
			continue
		}
		done := uint64(0)
		for d := range iv.Directions {
			done += iv.Directions[d].Operations
		}
		if first, ok := c.resumed[iv.VM]; done > 0 && (!ok || iv.StartNanos < first) {
			c.resumed[iv.VM] = iv.StartNanos
		}
	}
}

// Baseline is when the loads were back at their baseline after a node lost its power: what the cost of that event says. resumed reports
// whether its VMs had I/O again.
type Baseline func(node string, atNanos int64, resumed bool) result.RecoveryPhase

// List returns the recovery timeline of each power loss.
func (r *Recoveries) List(baseline Baseline) []result.Recovery {
	var list []result.Recovery
	for i := range r.losses {
		c := &r.losses[i]
		rec := result.Recovery{Node: c.operation.Subject, Operation: c.operation.Operation, VMs: len(c.vms), FromNanos: c.operation.FromNanos}
		rec.Phases = []result.RecoveryPhase{
			r.command(c), r.nodePhase(c, phaseBMC, interval.OperationNodeOn), r.nodePhase(c, phaseHost, interval.OperationHostUp),
			r.nodePhase(c, phaseCluster, interval.OperationClusterReady), r.vmPhase(c), r.firstIO(c), baseline(rec.Node, rec.FromNanos, len(c.resumed) > 0),
		}
		rec.Phases[len(rec.Phases)-1].Name = phaseBaseline
		split(&rec)
		list = append(list, rec)
	}
	return list
}

// split gives each known milestone the time since the previous one, so that they add up.
func split(rec *result.Recovery) {
	var known []*result.RecoveryPhase
	for i := range rec.Phases {
		if rec.Phases[i].AtNanos != nil {
			known = append(known, &rec.Phases[i])
		}
	}
	slices.SortStableFunc(known, func(a, b *result.RecoveryPhase) int { return cmp.Compare(*a.AtNanos, *b.AtNanos) })
	before := rec.FromNanos
	for _, p := range known {
		took := *p.AtNanos - before
		p.TookNanos, before = &took, *p.AtNanos
	}
	if len(known) == len(rec.Phases) {
		took := before - rec.FromNanos
		rec.TookNanos = &took
	}
}

// command returns when the run first requested power on.
func (r *Recoveries) command(c *powerLoss) result.RecoveryPhase {
	p := result.RecoveryPhase{Name: phaseCommand, Unknown: "node not powered on again"}
	for i := range r.operations {
		o := &r.operations[i]
		if o.Operation == interval.OperationNodeOn && o.Subject == c.operation.Subject && o.FromNanos >= c.operation.FromNanos &&
			o.FromNanos < c.until {
			p.AtNanos, p.Unknown, p.Note = &o.FromNanos, "", "off until this command of the run"
			return p
		}
	}
	return p
}

// nodePhase reads the end of an operation on the node.
func (r *Recoveries) nodePhase(c *powerLoss, name string, op interval.Operation) result.RecoveryPhase {
	p := result.RecoveryPhase{Name: name, Unknown: "node not powered on again"}
	for i := range r.operations {
		o := &r.operations[i]
		if o.Subject != c.operation.Subject || o.FromNanos < c.operation.FromNanos || o.FromNanos >= c.until {
			continue
		}
		if o.Operation == interval.OperationNodeOn && op != interval.OperationNodeOn && p.AtNanos == nil {
			p.Unknown = "not reported by this target"
		}
		if o.Operation != op || p.AtNanos != nil {
			continue
		}
		switch {
		case o.ToNanos == nil:
			p.Unknown = "not waited for"
		case o.Error != "":
			p.Unknown = "failed: " + o.Error
		default:
			p.AtNanos, p.Unknown, p.UncertainNanos = o.ToNanos, "", o.UnwatchedNanos
		}
	}
	return p
}

// vmPhase reads when the last VM of the node answered.
func (r *Recoveries) vmPhase(c *powerLoss) result.RecoveryPhase {
	p := result.RecoveryPhase{Name: phaseVM}
	if len(c.vms) == 0 {
		p.Unknown = "no VM on the node"
		return p
	}
	up, last, earliest := map[string]bool{}, int64(0), int64(0)
	for i := range r.operations {
		o := &r.operations[i]
		if o.Operation != interval.OperationVMRecovery || !c.vms[o.Subject] || o.FromNanos < c.operation.FromNanos ||
			o.FromNanos >= c.until || o.ToNanos == nil || o.Error != "" {
			continue
		}
		up[o.Subject], last, earliest = true, max(last, *o.ToNanos), max(earliest, *o.ToNanos-o.UnwatchedNanos)
	}
	if len(up) == len(c.vms) {
		p.AtNanos, p.UncertainNanos = &last, last-earliest
	} else {
		p.Unknown = fmt.Sprintf("%d of %d VMs responded again", len(up), len(c.vms))
	}
	return p
}

// firstIO reads when the first operation completed on a VM of the node after the loss, to the precision of an interval.
func (r *Recoveries) firstIO(c *powerLoss) result.RecoveryPhase {
	p := result.RecoveryPhase{Name: phaseFirstIO, Unknown: "no load ran again on the VMs of the node"}
	if len(c.vms) == 0 {
		p.Unknown = "no VM on the node"
	}
	for _, at := range c.resumed {
		if p.AtNanos == nil || at < *p.AtNanos {
			p.AtNanos, p.Unknown = &at, ""
		}
	}
	if p.AtNanos != nil {
		p.Note = "start of its interval"
	}
	return p
}
