package document

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/unit"
)

// noDurations is the value for a run without operations.
var noDurations = &result.Durations{}

func durationsOf(d *Document) *result.Durations {
	if d.Durations == nil {
		return noDurations
	}
	return d.Durations
}

// OperationTable has a row for each operation, aggregated over VMs or nodes.
func OperationTable(d *Document) draw.Table {
	t := draw.Table{Heads: []string{"operation", "of", "count", "min", "median", "p95", "max", "uncertain by", "failed", "no end"}, Left: 2}
	for _, s := range durationsOf(d).Operations {
		name := operationName(s.Operation)
		if s.Simulated {
			name += " (simulated)"
		}
		t.Add(name, s.Of, strconv.Itoa(s.Count), took(s.Min), took(s.Median), took(s.P95), took(s.Max), uncertainty(s.UncertainNanos), strconv.Itoa(s.Failed),
			strconv.Itoa(s.Unwatched+s.Open))
	}
	return t
}

// RecoveryTable splits the recovery of each node.
func RecoveryTable(d *Document) draw.Table {
	t := draw.Table{Heads: []string{"node", "reached", "remark", "at", "since loss", "took"}, Left: 3, Grouped: true}
	for _, r := range durationsOf(d).Recoveries {
		r.Node = nodeName(d, r.Node)
		t.Add(r.Node, "loss of power", fmt.Sprintf("%s; VMs on it: %d", operationName(r.Operation), r.VMs), unit.FormatClock(r.FromNanos), "–", "–")
		for _, p := range r.Phases {
			if p.AtNanos == nil || p.TookNanos == nil {
				t.Add(r.Node, p.Name, "unknown: "+p.Unknown, "–", "–", "–")
				continue
			}
			if p.UncertainNanos > 0 {
				p.Note = strings.TrimPrefix(p.Note+"; up to "+short(p.UncertainNanos)+" earlier", "; ")
			}
			t.Add(r.Node, p.Name, p.Note, unit.FormatClock(*p.AtNanos), short(*p.AtNanos-r.FromNanos), short(*p.TookNanos))
		}
	}
	return t
}

// singleShownMax bounds the operations that a page lists one by one; JSON and the CSV of points have all of them.
const singleShownMax = 2000

// SingleTable lists operations one by one.
func SingleTable(d *Document) draw.Table {
	t := draw.Table{Heads: []string{"operation", "VM or node", "outcome", "at", "took"}, Left: 3}
	for i, o := range durationsOf(d).Single {
		if i == singleShownMax {
			break
		}
		name, length, outcome := nodeName(d, o.Subject), "–", "done"
		if name == "" {
			name = fmt.Sprintf("%d VMs with one call", o.VMs)
		}
		switch {
		case o.TookNanos == nil:
			outcome = "no end observed"
		case o.Error != "":
			outcome = "failed: " + o.Error
		case o.UnwatchedNanos >= int64(time.Second):
			outcome = "done, up to " + draw.Duration(o.UnwatchedNanos) + " earlier"
		}
		if o.TookNanos != nil {
			length = short(*o.TookNanos)
		}
		t.Add(operationName(o.Operation), name, outcome, unit.FormatClock(o.FromNanos), length)
	}
	return t
}

// nodeName returns the name of the node with that id; any other text is returned unchanged.
func nodeName(d *Document, id string) string {
	for _, n := range d.Target.Nodes {
		if n.ID == id && n.Name != "" {
			return n.Name
		}
	}
	return id
}

// short prints a duration, with microseconds if it is under a second.
func short(nanos int64) string {
	if nanos > 0 && nanos < int64(time.Second) {
		return draw.Quantity(float64(nanos), "ns")
	}
	return draw.Duration(nanos)
}

func took(n result.Number) string {
	if v := float64(n); !math.IsNaN(v) {
		return short(int64(v))
	}
	return "–"
}

// uncertainty prints by how much a time may be too long.
func uncertainty(nanos int64) string {
	if nanos <= 0 {
		return "–"
	}
	return "−" + short(nanos)
}

// operationName is the display name of an operation.
func operationName(o interval.Operation) string {
	names := map[interval.Operation]string{
		interval.OperationDeploy: "deploy from template", interval.OperationPowerOn: "power on", interval.OperationBoot: "boot until agent responds",
		interval.OperationVMRecovery: "VM back after node loss", interval.OperationNodeOff: "cut power of node",
		interval.OperationNodeShutdown: "shut node down", interval.OperationNodeOn: "power node on",
		interval.OperationHostUp: "power on until host responds", interval.OperationClusterReady: "power on until cluster is ready",
	}
	if name, ok := names[o]; ok {
		return name
	}
	return string(o)
}

// DurationSeries are the successful operations, one series per kind: start and duration in nanoseconds.
func DurationSeries(d *Document) []result.Series {
	var list []result.Series
	at := map[interval.Operation]int{}
	for _, o := range durationsOf(d).Single {
		if o.Subject == "" || o.Error != "" || o.TookNanos == nil {
			continue
		}
		i, ok := at[o.Operation]
		if !ok {
			i = len(list)
			at[o.Operation] = i
			list = append(list, result.Series{Name: operationName(o.Operation)})
		}
		list[i].Points = append(list[i].Points, result.Point{Seconds: float64(o.FromNanos) / 1e9, Value: float64(*o.TookNanos)})
	}
	return list
}

// durationRows are rows of CSV with the statistics of operations.
func durationRows(d *Document, head []string) [][]string {
	var rows [][]string
	for _, s := range durationsOf(d).Operations {
		row := append(append([]string{}, head...), string(s.Operation), operationName(s.Operation), "duration", "ns", "", seconds(0),
			seconds(d.DurationNanos), s.Of, "", strconv.Itoa(s.Count), strconv.Itoa(s.Failed+s.Unwatched+s.Open))
		nan := result.Number(math.NaN())
		rows = append(rows, append(row, numbers(nan, s.Median, s.P95, nan, nan, s.Max, s.Min, nan)...))
	}
	for _, r := range durationsOf(d).Recoveries {
		for _, p := range r.Phases {
			row := append(append([]string{}, head...), "recovery", cell(p.Name), "recovery", "ns", "", seconds(r.FromNanos), "", cell(r.Node), "")
			if p.AtNanos == nil || p.TookNanos == nil {
				rows = append(rows, append(row, "0", "", "", "", "", "", "", "", "", ""))
				continue
			}
			row[len(row)-3] = seconds(*p.AtNanos)
			length := result.Number(*p.TookNanos)
			nan := result.Number(math.NaN())
			rows = append(rows, append(append(row, "1", ""), numbers(length, length, nan, nan, nan, length, length, nan)...))
		}
	}
	return rows
}

// durationPoints are rows of the CSV of points: start and duration of each operation on one VM or node.
func durationPoints(d *Document) [][]string {
	var rows [][]string
	for _, o := range durationsOf(d).Single {
		if o.Subject == "" || o.TookNanos == nil {
			continue
		}
		state := ""
		if o.Error != "" {
			state = "failed"
		}
		rows = append(rows, []string{cell(d.Run), string(o.Operation), "ns", cell(o.Subject), "duration", state, seconds(o.FromNanos),
			strconv.FormatInt(*o.TookNanos, 10)})
	}
	return rows
}
