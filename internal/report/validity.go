package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/report/draw"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// reductions says every factor of a rehearsal in one sentence each.
func reductions(r *result.Rehearsal) []string {
	if r == nil {
		return []string{}
	}
	list := []string{fmt.Sprintf("Time: the run was asked to take %s; every wait and runtime was multiplied by %s.",
		draw.Duration(int64(r.Asked)), factor(r.TimeFactor))}
	if r.Nodes[0] != r.Nodes[1] {
		list = append(list, fmt.Sprintf("Nodes: %d instead of %d.", r.Nodes[1], r.Nodes[0]))
	}
	for _, group := range slices.Sorted(maps.Keys(r.Counts)) {
		c := r.Counts[group]
		if c[0] != c[1] {
			list = append(list, fmt.Sprintf("VMs of group %q: %d instead of %d.", group, c[1], c[0]))
		}
	}
	for _, group := range slices.Sorted(maps.Keys(r.SizeFactor)) {
		if f := r.SizeFactor[group]; f != 1 {
			list = append(list, fmt.Sprintf("Data of each VM of group %q: sizes multiplied by %s.", group, factor(f)))
		}
	}
	for _, group := range slices.Sorted(maps.Keys(r.VCPUs)) {
		list = append(list, fmt.Sprintf("vCPUs of each VM of group %q: %d instead of %d.", group, r.VCPUs[group][1], r.VCPUs[group][0]))
	}
	for _, group := range slices.Sorted(maps.Keys(r.RAMBytes)) {
		list = append(list, fmt.Sprintf("Memory of each VM of group %q: %s instead of %s.", group,
			unit.FormatBytes(r.RAMBytes[group][1]), unit.FormatBytes(r.RAMBytes[group][0])))
	}
	for _, note := range r.Notes {
		list = append(list, sentence(note))
	}
	return list
}

// sentence begins a text with a capital and ends it with a full stop.
func sentence(text string) string {
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

// factor prints a factor below one also as "1/N", which is how people say it.
func factor(f float64) string {
	text := strconv.FormatFloat(f, 'g', 3, 64)
	if f > 0 && f < 0.5 {
		return fmt.Sprintf("%s (about 1/%s)", text, draw.Amount(1/f, ""))
	}
	return text
}

// imitations says everything in the run that was not real.
func imitations(m *result.Manifest, s *result.Summary, events []interval.Event) []string {
	list := []string{}
	if m.Target.Simulated {
		list = append(list, fmt.Sprintf("The target %q is simulated: no storage was touched, and no number here "+
			"describes a real system.", m.Target.Name))
	}
	for _, what := range slices.Sorted(maps.Keys(m.Target.Imitated)) {
		list = append(list, sentence(what+": "+m.Target.Imitated[what]))
	}
	seen := map[string]bool{}
	for _, e := range events {
		if e.Simulate && e.Kind == interval.EventStepStarted && e.Step != "" && !seen[e.Step] {
			seen[e.Step] = true
			list = append(list, fmt.Sprintf("The step %s was only imitated on this target.", e.Step))
		}
	}
	for i := range s.Results {
		if s.Results[i].Simulated {
			list = append(list, fmt.Sprintf("The data of %q is simulated.", heading(&s.Results[i])))
		}
	}
	return list
}

// methods says for each result and for each statistic where it comes from.
func methods(d *Document) []Method {
	list := []Method{}
	for i := range d.Results {
		r := &d.Results[i]
		if r.Source != "" {
			list = append(list, Method{What: r.Heading(), How: sentence(r.Source)})
		}
	}
	return append(list, methodOfStatistics...)
}

var methodOfStatistics = []Method{
	{"Service time", "From the moment an operation was submitted to its completion. Comparable with fio's completion " +
		"latency (clat) and with X-Ray."},
	{"Response time", "From the moment an operation was due, by its rate, to its completion. It contains the time " +
		"spent waiting behind slow operations. A load without a rate has no due time; its response time is its " +
		"service time."},
	{"Percentiles of latency", "Read from the merged histograms of all operations in the window, never averaged from " +
		"other percentiles. A bucket is at most 0.79 % of its value wide, so a percentile is within 0.4 % of a " +
		"recorded value. Minimum and maximum are exact."},
	{"Percentiles of everything else", "Read from the points of the series in the window (nearest rank)."},
	{"Missing percentiles", "p95 needs 20 operations or points, p99 100 and p99.9 1,000. With fewer it is missing."},
	{"CV", "Coefficient of variation: standard deviation divided by mean."},
	{"Windows", "The run phase is cut at every step that changes something; each stretch has its own statistics, " +
		"because a mean over a failure and its recovery describes neither."},
	{"Durations of operations", "Differences of the times of two events. Statistics are of those that ended well, at a moment that somebody " +
		"was watching for: whether an agent, a host or the cluster answers is known only by asking."},
	{"Back to baseline", "From that second on, the median of five seconds of IOPS is no lower than in the window before the loss (its 5th " +
		"percentile, or 95 % of its median where that is lower), that of the mean response time no higher (95th, or 105 %), and " +
		"this for ten seconds."},
	{"Gaps", "A moment without data is drawn as a gap and counted nowhere. A zero is a measured zero."},
	{"Units", "Rates of bytes have decimal prefixes (MB/s is 1,000,000 B/s); sizes have binary ones (GiB is 2^30 B)."},
}
