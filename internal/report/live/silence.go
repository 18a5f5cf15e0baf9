package live

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// A VM whose agent does not answer sends no data. The sums of its load lack its part, and the view must say so.

// noteSilence notes from an event that a VM does not answer, or answers again.
func (s *state) noteSilence(e interval.Event) {
	switch e.Kind {
	case interval.EventAgentSilent:
		s.silent[e.Subject] = e.AtNanos
	case interval.EventAgentBack, interval.EventVMStopped:
		delete(s.silent, e.Subject)
	case interval.EventAnnotation, interval.EventDisturbance: // a load that has ended on its VM
		for _, l := range s.loads {
			if l.key == (liveLoadKey{e.Workload, e.Instance, e.Prefill}) {
				delete(l.vms, e.Subject)
			}
		}
	}
}

// stale lists the VMs of a running load that do not answer.
func (s *state) stale(l *liveLoad) []string {
	var list []string
	for vm, runs := range l.vms {
		if _, silent := s.silent[vm]; silent && runs {
			list = append(list, vm)
		}
	}
	slices.Sort(list)
	return list
}

// vmsOf prints on how many VMs a load runs, and how many of them sent no new data: "3, 1 silent".
func (s *state) vmsOf(l *liveLoad) string {
	text := fmt.Sprint(len(l.vms))
	if n := len(s.stale(l)); n > 0 {
		text += fmt.Sprintf(", %d silent", n)
	}
	return text
}

const staleShownMax = 3

// staleLines names the VMs of loads whose data are old.
func (s *state) staleLines(columns int) []string {
	vms := map[string]bool{}
	for _, l := range s.loads {
		for _, vm := range s.stale(l) {
			vms[vm] = true
		}
	}
	if len(vms) == 0 {
		return nil
	}
	var parts []string
	for _, vm := range slices.Sorted(maps.Keys(vms)) {
		away := s.elapsed() - time.Duration(s.silent[vm])
		parts = append(parts, fmt.Sprintf("%s for %s", draw.Clean(vm), unit.FormatClock(int64(away.Truncate(time.Second)))))
	}
	return draw.Wrap("stale: no answer from "+textio.Few(parts, staleShownMax), columns)
}
