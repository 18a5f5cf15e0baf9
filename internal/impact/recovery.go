package impact

import (
	"cmp"
	"slices"

	"github.com/braggdev/bragg/internal/result"
)

// Back is when the loads were within 5 % of their baseline and stayed there after a node lost its power: the last of those that ran over
// it. resumed reports whether its VMs had I/O again: they count too then.
func Back(list []result.Impact) func(node string, atNanos int64, resumed bool) result.RecoveryPhase {
	return func(node string, atNanos int64, resumed bool) (p result.RecoveryPhase) {
		at := slices.IndexFunc(list, func(i result.Impact) bool {
			cut := i.Kind == result.ImpactNodeOff || i.Kind == result.ImpactNodeShutdown
			return cut && slices.Contains(i.Subjects, node) && i.FromNanos <= atNanos && atNanos <= max(i.ToNanos, i.FromNanos)
		})
		var scores []*result.ImpactScore
		others := true
		for k := 0; at >= 0 && k < len(list[at].Loads); k++ {
			l := &list[at].Loads[k]
			if l.LivedOn != nil {
				scores = append(scores, l.LivedOn)
			}
			if l.TakenAway != nil && resumed {
				scores, others = append(scores, l.TakenAway), false
			}
		}
		if p.Unknown = "no load during the power loss"; len(scores) == 0 {
			if at >= 0 && len(list[at].Loads) > 0 {
				p.Unknown = "no load on other nodes"
			}
			return p
		}
		last := atNanos
		for _, s := range scores {
			if s.Within5.Nanos == nil {
				return result.RecoveryPhase{Unknown: cmp.Or(s.Within5.Unknown, s.Unknown, "not back within 5 %")}
			}
			last = max(last, list[at].FromNanos+*s.Within5.Nanos)
		}
		if p.Note = "all VMs"; others {
			p.Note = "VMs on other nodes"
		}
		p.AtNanos, p.Unknown = &last, ""
		if last == atNanos {
			p.Note += ", never left baseline"
		} else {
			p.Note += ", within 5 % from then on"
		}
		return p
	}
}
