package fioreport

import (
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// shares are percentages by class, in the order of classes.
type shares []share

type share struct {
	label   string
	percent float64
}

// MarshalJSON implements json.Marshaler.
func (s shares) MarshalJSON() ([]byte, error) {
	var p pairs
	for _, c := range s {
		p = append(p, pair{c.label, Decimal(c.percent)})
	}
	return p.MarshalJSON()
}

func sharesOf(labels []string, counts []uint64) shares {
	var total uint64
	for _, n := range counts {
		total += n
	}
	out := make(shares, len(labels))
	for i, label := range labels {
		out[i].label = label
		if total > 0 {
			out[i].percent = 100 * float64(counts[i]) / float64(total)
		}
	}
	return out
}

var (
	levelLabels = []string{"1", "2", "4", "8", "16", "32", ">=64"}
	batchLabels = []string{"0", "4", "8", "16", "32", "64", ">=64"}
)

func (row *Row) levels() shares { return sharesOf(levelLabels, row.Account.Depth[:]) }

func batches(counts [7]uint64) shares { return sharesOf(batchLabels, counts[:]) }

// latencyEdges are the classes of latency_ns, latency_us and latency_ms: each contains the values below its edge and not
// below the previous one.
var latencyEdges = []struct {
	unit   time.Duration
	edges  []uint64
	labels []string
}{
	{time.Nanosecond, []uint64{2, 4, 10, 20, 50, 100, 250, 500, 750, 1000}, nil},
	{time.Microsecond, []uint64{2, 4, 10, 20, 50, 100, 250, 500, 750, 1000}, nil},
	{time.Millisecond, []uint64{2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000}, []string{"2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"}},
}

var latencyLabels = []string{"2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"}

// latencyClasses sorts the response times of all operations into fio's classes.
func (row *Row) latencyClasses() (nanos, micros, millis shares) {
	var all stat.Histogram
	for d := range row.Directions {
		all.Merge(row.Directions[interval.Direction(d)].Response)
	}
	var out [3]shares
	for i, class := range latencyEdges {
		labels := class.labels
		if labels == nil {
			labels = latencyLabels
		}
		out[i] = make(shares, len(labels))
		for k, label := range labels {
			out[i][k].label = label
		}
	}
	total := float64(all.Count())
	all.Buckets(func(bucket int, count uint64) bool {
		low, high := stat.BucketBounds(bucket)
		i, k := classOf(low + (high-low)/2)
		out[i][k].percent += 100 * float64(count) / total
		return true
	})
	return out[0], out[1], out[2]
}

func classOf(nanos uint64) (class, edge int) {
	for i, c := range latencyEdges {
		for k, e := range c.edges {
			if nanos < e*uint64(c.unit) {
				return i, k
			}
		}
	}
	return len(latencyEdges) - 1, len(latencyEdges[len(latencyEdges)-1].edges)
}

// cpuShare returns a CPU time in percent of the time that the row's clones ran.
func (row *Row) cpuShare(nanos int64) float64 {
	if row.Runtime <= 0 {
		return 0
	}
	return 100 * float64(nanos) / float64(row.Runtime) / float64(max(1, row.Clones))
}

// fields splits a list of numbers as fio does.
func fields(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == ',' || r == ' ' })
}
