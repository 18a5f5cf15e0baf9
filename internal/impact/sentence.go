package impact

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// droppedShare of the baseline's operations are worth a word.
const droppedShare = 0.001

// Sentence says what an event cost, with numbers, in one sentence without a full stop at its end.
func Sentence(i *result.Impact) string {
	var parts []string
	for k := range i.Loads {
		l := &i.Loads[k]
		name := l.Workload
		if l.LivedOn != nil {
			parts = append(parts, livedOn(i, l, name))
		}
		if l.TakenAway != nil {
			parts = append(parts, takenAway(i, l, name))
		}
	}
	if len(i.Overlaps) > 0 {
		parts = append(parts, "overlaps with "+strings.Join(i.Overlaps, ", "))
	}
	return Title(i) + ": " + strings.Join(parts, "; ")
}

// Title names the event: "Power cut of node-1".
func Title(i *result.Impact) string {
	subjects := few(i.Subjects, "nodes")
	title := i.Event
	switch i.Kind {
	case result.ImpactNodeOff:
		title = "Power cut of " + subjects
	case result.ImpactNodeShutdown:
		title = "Shutdown of " + subjects
	case result.ImpactNodeOn:
		title = "Power-on of " + subjects
	case result.ImpactMigrate:
		title = "Migration of " + textio.Plural(i.VMs, "VM")
	case result.ImpactSnapshot:
		title = "Snapshot of " + textio.Plural(i.VMs, "VM")
		if i.Calls > 1 {
			title = fmt.Sprintf("%d snapshots of %s", i.Calls, textio.Plural(i.VMs, "VM"))
		}
	case result.ImpactClone:
		title = "Cloning of " + textio.Plural(i.VMs, "VM")
	case result.ImpactPowerOn:
		title = "Power-on of " + textio.Plural(i.VMs, "VM")
	case result.ImpactNeighbor:
		title = i.Event
		if !strings.Contains(strings.ToLower(title), "neighbor") { // as many scenarios call it
			title = "Neighbor " + title
		}
	case result.ImpactAgentLost:
		title = "Lost connection to " + few(i.Subjects, "VMs")
	case result.ImpactVMStopped:
		title = "Unplanned stop of " + few(i.Subjects, "VMs")
	}
	if n := len(i.With); n == 1 {
		title += " and 1 more step"
	} else if n > 1 {
		title += fmt.Sprintf(" and %d more steps", n)
	}
	if i.Simulated {
		title += " (simulated)"
	}
	return title
}

// few lists up to three names, or says of how many things they are.
func few(names []string, things string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%d %s", len(names), things)
	}
	return strings.Join(names, ", ")
}

// livedOn says what VMs lost that the event did not take away.
func livedOn(i *result.Impact, l *result.ImpactLoad, name string) string {
	s := l.LivedOn
	subject := name
	if l.TakenAway != nil {
		others := "other VMs"
		if i.Kind == result.ImpactNodeOff || i.Kind == result.ImpactNodeShutdown {
			others = "VMs on other nodes"
		}
		if s.Count == 1 {
			others = strings.Replace(others, "VMs", "VM", 1)
		}
		subject = fmt.Sprintf("the %d %s (%s)", s.Count, others, name)
	}
	if s.Unknown != "" {
		return join(subject+": cost unknown, "+s.Unknown, s)
	}
	d := &s.Dip
	if !d.Seen {
		seen := "would have seen " + percent(float64(d.Detectable)) + " over 10 s"
		if !(d.Detectable < 1) {
			seen = "the baseline varies too much to see any"
		}
		return join(fmt.Sprintf("%s: no dip seen (%s; %s)", subject, fromTo(s.Baseline.Mean, s.Level, l.Unit), seen), s)
	}
	loss := 1 - float64(d.Mean)/float64(s.Baseline.Mean)
	text := fmt.Sprintf("%s lost %s (%s)", subject, percent(loss), fromTo(s.Baseline.Mean, d.Mean, l.Unit))
	from := max(d.FromNanos, i.FromNanos)
	if length := d.ToNanos - from; 2*int64(d.Seconds)*second < length {
		text += fmt.Sprintf(" in %d s of %s", d.Seconds, span(length))
	} else {
		text += " for " + span(length)
	}
	if since := from - i.FromNanos; since >= lateOnset {
		text += fmt.Sprintf(", from %s after it on", span(since))
	}
	if depth := float64(d.Depth); depth > 1.25*loss && depth-loss > 0.02 {
		text += fmt.Sprintf(", at worst %s over %d s", percent(depth), d.OverSeconds)
	}
	if d.StaysBelow {
		text += fmt.Sprintf(", then stayed %s below (%s)", percent(1-float64(d.Then)/float64(s.Baseline.Mean)), rate(float64(d.Then), l.Unit))
	}
	switch back := s.Within5; {
	case back.Nanos == nil:
		text += ", not back within 5 %"
	case *back.Nanos == 0:
		text += ", within 5 % all the time"
	default:
		text += ", back within 5 % after " + span(*back.Nanos)
	}
	return join(text, s)
}

// takenAway says how long VMs that the event took away did nothing.
func takenAway(i *result.Impact, l *result.ImpactLoad, name string) string {
	s := l.TakenAway
	where := "that it took away"
	switch {
	case (i.Kind == result.ImpactNodeOff || i.Kind == result.ImpactNodeShutdown) && len(i.Subjects) > 0:
		where = "on " + few(i.Subjects, "nodes")
	case i.Kind == result.ImpactAgentLost:
		where = "without connection"
	}
	text := fmt.Sprintf("%s %s", textio.Plural(s.Count, "VM"), where)
	if l.LivedOn == nil {
		text = fmt.Sprintf("all %s of %s", textio.Plural(s.Count, "VM"), name)
		if s.Count == 1 {
			text = "the only VM of " + name
		}
	}
	switch stall := &s.Stall; {
	case l.UntilNanos < max(i.ToNanos, i.FromNanos+2*second):
		return "the load on " + text + " ended with it"
	case stall.Open:
		text += fmt.Sprintf(" did nothing for %s, to the end", span(stall.Nanos))
	case stall.AtLeastNanos > 0:
		text += " did nothing for " + span(stall.Nanos)
		if s.Within5.Nanos != nil && *s.Within5.Nanos > 0 {
			text += ", back within 5 % after " + span(*s.Within5.Nanos)
		} else if s.Within5.Unknown != "" && s.Unknown == "" {
			text += ", not back within 5 %"
		}
	default:
		text += " went on without a stall of a second"
	}
	return text + lostText(s)
}

// latencyFactor is by how much a p99 must rise to be worth a word if the variation of the baseline is unknown, latencyMin from how
// many operations on.
const (
	latencyFactor = 2
	latencyMin    = 1000
)

// latencyText says how the p99 changed, if it left the range that it has in the baseline by itself: during the event, or later and then
// by lateFactor more. A load with a rate catches up, so that its rate shows nothing of a stretch in which its operations waited.
func latencyText(l *result.ImpactLatency) string {
	if l.Before == nil || l.Before.Count < latencyMin {
		return ""
	}
	low, high := result.Number(math.Inf(-1)), l.Before.P99*latencyFactor
	own := ""
	if r := l.Before.Range; r != nil {
		low, high = min(r[0], l.Before.P99)/worstFactor, max(r[1], l.Before.P99)*worstFactor
		own = fmt.Sprintf(" (%s to %s by itself)", unit.FormatLatency(float64(r[0])), unit.FormatLatency(float64(r[1])))
	}
	to := func(d *result.LatencyDigest, low, high result.Number, when string) string {
		if d == nil || d.Count < latencyMin {
			return ""
		}
		atLeast := ""
		if d.AtLeast.Has("p99") {
			atLeast = "at least "
		}
		if !(d.P99 >= high) && (atLeast != "" || !(d.P99 <= low)) {
			return ""
		}
		return fmt.Sprintf(", p99 %s time from %s%s to %s%s%s", l.Kind, unit.FormatLatency(float64(l.Before.P99)), own, atLeast,
			unit.FormatLatency(float64(d.P99)), when)
	}
	if text := to(l.During, low, high, ""); text != "" {
		return text
	}
	return to(l.After, result.Number(math.Inf(-1)), lateFactor*high, " after it")
}

// join appends stalls and losses. A stall that the baseline had too is not worth a word.
func join(text string, s *result.ImpactScore) string {
	stall := &s.Stall
	switch {
	case stall.Open && s.Vanished > 0:
		text += fmt.Sprintf(", %s did nothing for %s, to the end", textio.Plural(s.Vanished, "VM"), span(stall.Nanos))
	case stall.Nanos < analysis.HungNanos || stall.Nanos < 2*stall.BaselineNanos:
	case stall.AtLeastNanos > 0:
		text += ", longest stall " + span(stall.Nanos)
		if float64(stall.PausedNanos) >= 0.9*float64(stall.Nanos) {
			text += " (load generator paused)"
		}
	default:
		text += ", no stall longer than " + span(stall.Nanos)
	}
	return text + latencyText(&s.Latency) + lostText(s)
}

func lostText(s *result.ImpactScore) string {
	text := ""
	if n, u := float64(s.Lost.Operations), float64(s.Lost.UncertainOperations); n > u && n >= 1 {
		text = fmt.Sprintf(", %s operations fewer than the baseline", unit.FormatWhole(round3(n)))
		if u > n/10 {
			text += fmt.Sprintf(" (± %s)", unit.FormatWhole(round3(u)))
		}
	}
	if s.Lost.Failed > 0 {
		text += fmt.Sprintf(", %s failed", unit.FormatWhole(s.Lost.Failed))
	}
	if due := float64(s.Baseline.Mean) * float64(s.Baseline.Seconds); float64(s.Lost.Dropped) > droppedShare*due {
		text += fmt.Sprintf(", %s never issued", unit.FormatWhole(s.Lost.Dropped))
	}
	return text
}

// round3 keeps three significant digits.
func round3(v float64) uint64 {
	if v < 1 {
		return 0
	}
	scale := math.Pow(10, math.Floor(math.Log10(v))-2)
	return uint64(math.Round(math.Round(v/scale) * scale))
}

// fromTo prints a change of a rate; IOPS are printed once.
func fromTo(from, to result.Number, name string) string {
	if name == "B/s" {
		return rate(float64(from), name) + " to " + rate(float64(to), name)
	}
	return rate(float64(from), "") + " to " + rate(float64(to), name)
}

func rate(v float64, name string) string {
	if name == "B/s" {
		return unit.FormatRate(v)
	}
	return strings.TrimSpace(unit.FormatCount(v) + " " + name)
}

// percent prints a share with two digits at most.
func percent(share float64) string {
	v := 100 * share
	switch {
	case v >= 9.95 || math.Abs(v) < 0.005:
		return fmt.Sprintf("%.0f %%", v)
	case v >= 0.95:
		return strings.Replace(fmt.Sprintf("%.1f %%", v), ".0 ", " ", 1)
	}
	return fmt.Sprintf("%.2g %%", v)
}

// span prints a duration to a tenth of a second, from ten seconds on to the second.
func span(nanos int64) string {
	d := time.Duration(nanos)
	switch {
	case d < 100*time.Millisecond:
		return unit.FormatDuration(d.Round(time.Millisecond))
	case d < 10*time.Second:
		return strings.Replace(fmt.Sprintf("%.1f s", d.Seconds()), ".0 ", " ", 1)
	}
	return unit.FormatDuration(d.Round(time.Second))
}
