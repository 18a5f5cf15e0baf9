package document

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/textio"
)

// reductions describes each factor of a rehearsal in a sentence.
func reductions(r *result.Rehearsal) []string {
	if r == nil {
		return []string{}
	}
	list := []string{fmt.Sprintf("Time: requested length %s; every wait and runtime is multiplied by %s.",
		draw.Duration(int64(r.Asked)), Factor(r.TimeFactor))}
	if r.Nodes[0] != r.Nodes[1] {
		list = append(list, fmt.Sprintf("Nodes: %d instead of %d.", r.Nodes[1], r.Nodes[0]))
	}
	for _, n := range plan.Reductions(r) {
		list = append(list, reductionText(&n))
	}
	for _, note := range r.Notes {
		list = append(list, Sentence(note))
	}
	return list
}

func reductionText(n *plan.Reduction) string {
	quoted := make([]string, len(n.Groups))
	for i, g := range n.Groups {
		quoted[i] = strconv.Quote(g)
	}
	of := "of each group"
	switch len(quoted) {
	case 0:
	case 1:
		of = "of group " + quoted[0]
	default:
		of = "of groups " + textio.JoinAnd(quoted)
	}
	switch less := strings.Replace(n.Text, " of ", " instead of ", 1); n.Of {
	case "bytes":
		return fmt.Sprintf("Data of each VM %s: sizes multiplied by %s.", of, Factor(n.Factor))
	case "VMs":
		return fmt.Sprintf("VMs %s: %s.", of, less)
	case "vCPUs":
		return fmt.Sprintf("vCPUs of each VM %s: %s.", of, less)
	default:
		return fmt.Sprintf("Memory of each VM %s: %s.", of, less)
	}
}

// Sentence begins a text with a capital and ends it with a full stop.
func Sentence(text string) string {
	text = strings.TrimSpace(text)
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	text = string(unicode.ToUpper(first)) + text[size:]
	if !strings.ContainsAny(text[len(text)-1:], ".!?:") {
		text += "."
	}
	return text
}

// Factor prints a factor below one also as "1/N", which is how people say it.
func Factor(f float64) string {
	text := strconv.FormatFloat(f, 'g', 3, 64)
	if f > 0 && f < 0.5 {
		return fmt.Sprintf("%s (about 1/%s)", text, draw.Amount(1/f, ""))
	}
	return text
}

// simulations lists everything that was simulated in the run.
func simulations(m *result.Manifest, s *result.Summary, events []interval.Event) []string {
	list := []string{}
	if m.Target.Simulated {
		list = append(list, fmt.Sprintf("The target %q is simulated: no storage was accessed, and no number "+
			"describes a real system.", m.Target.Name))
	}
	for _, what := range slices.Sorted(maps.Keys(m.Target.Simulates)) {
		list = append(list, Sentence(what+": "+m.Target.Simulates[what]))
	}
	for _, source := range m.Target.Sources {
		if source.Simulated {
			list = append(list, fmt.Sprintf("The counters of source %s are simulated.", source.Name))
		}
	}
	seen := map[string]bool{}
	for _, e := range events {
		if e.Simulate && e.Kind == interval.EventStepStarted && e.Step != "" && !seen[e.Step] {
			seen[e.Step] = true
			list = append(list, fmt.Sprintf("Step %s was only simulated on this target.", e.Step))
		}
	}
	for i := range s.Results {
		if s.Results[i].Simulated && !s.Results[i].Unasked { // the others are of a capability or of a source
			list = append(list, fmt.Sprintf("The data of %q is simulated.", heading(&s.Results[i])))
		}
	}
	return list
}

// methods describes how each result and each statistic is obtained.
func methods(d *Document) []Method {
	list := []Method{}
	for i := range d.Results {
		r := &d.Results[i]
		if r.Source != "" {
			list = append(list, Method{What: r.Heading(), How: Sentence(r.Source)})
		}
	}
	return append(list, methodOfStatistics...)
}

var methodOfStatistics = []Method{
	{"Service time", "From submission to completion of an operation. Comparable with fio's completion " +
		"latency (clat) and with X-Ray."},
	{"Response time", "From the intended start of an operation, given by the rate, to its completion. It includes the time spent " +
		"queued behind slow operations. In a load without a rate response time equals service time."},
	{"Latency percentiles", "Computed from the merged histograms of all operations in the window, never averaged from " +
		"other percentiles. A bucket is at most 0.79 % of its value wide, so a percentile is within 0.4 % of a " +
		"recorded value. Minimum and maximum are exact."},
	{"Mean of a rate", "Operations or bytes that completed in the window, divided by the time in which the load ran, partial seconds included."},
	{"Other percentiles", "Computed from the points of the series in the window (nearest rank)."},
	{"Missing percentiles", "p95 needs 20 operations or points, p99 100 and p99.9 1,000. With fewer, it is omitted."},
	{"CV", "Coefficient of variation: standard deviation divided by mean."},
	{"Windows", "Every step that changes something starts a new window of the run phase. Each window has its own statistics, " +
		"because a mean over a failure and its recovery describes neither."},
	{"Operation durations", "Time between two events. Statistics include successful operations with an observed end. Agents, hosts and " +
		"clusters are polled; the resolution is the polling interval."},
	{"Back to baseline", "When the loads that ran over the loss of a node were within 5 % of their rate before it, and stayed there: the same figure as in " +
		"the cost of the event. Its baseline is the last stretch before the event without another change, without its first half if it is long, " +
		"and not the whole window of the numbers at the top."},
	{"Gaps", "Time without data is drawn as a gap and excluded from statistics. A zero is a measured zero."},
	{"Units", "Byte rates have decimal prefixes (MB/s is 1,000,000 B/s), sizes binary ones (GiB is 2^30 B)."},
}

// Headline joins the two verdicts, with the worst reason where it restricts a verdict: "PASS, qualified".
func (d *Document) Headline() string { return result.Headline(d.Verdict, d.Validity) }
