package evaluate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// hypervisorGroup is the heading of results that no scenario has requested: the hypervisor's counters of single VMs.
// Results of a scenario with the same quantities come from the load generator or from guests, and the two need not agree:
// this group makes such differences visible.
const hypervisorGroup = "Per-VM hypervisor metrics"

// vmLinesMax is how many VMs have a line each. With more VMs, each group has three lines: the lowest of its VMs, their mean and
// the highest.
const vmLinesMax = 40

// vmTitles has the title of each metric, its unit in reports, and the factor for that unit.
var vmTitles = map[target.VMMetric]struct {
	title, unit string
	factor      float64
	note        string
}{
	target.VMCPUUsage:     {"CPU used", "%", 100, "100 % = all vCPUs of the VM busy; on libvirt with the overhead of QEMU."},
	target.VMCPUSteal:     {"CPU steal", "%", 100, "Time for which runnable vCPUs waited for a host CPU."},
	target.VMCPUThrottled: {"CPU throttled", "%", 100, "Share of scheduling periods in which the VM was stopped by its CPU limit."},
	target.VMMemory:       {"Memory resident on the host", "B", 1, "Host memory of the VM; on libvirt with that of QEMU."},
	target.VMReads:        {"Disk reads", "IOPS", 1, "Sum over all disks of the VM."},
	target.VMWrites:       {"Disk writes", "IOPS", 1, "Sum over all disks of the VM."},
	target.VMReadBytes:    {"Disk bytes read", "B/s", 1, "Sum over all disks of the VM."},
	target.VMWritten:      {"Disk bytes written", "B/s", 1, "Sum over all disks of the VM."},
	target.VMReadTime:     {"Disk read latency", "ns", 1e9, "Mean of completed reads as the hypervisor counts it; a gap without reads."},
	target.VMWriteTime:    {"Disk write latency", "ns", 1e9, "Mean of completed writes as the hypervisor counts it; a gap without writes."},
	target.VMReceived:     {"Network bytes received", "B/s", 1, "Sum over all network interfaces of the VM."},
	target.VMTransmitted:  {"Network bytes sent", "B/s", 1, "Sum over all network interfaces of the VM."},
}

// vmReadings are the readings of one metric of one VM, kept small because there may be millions of them.
type vmReadings struct {
	group  string
	points []vmPoint
}

type vmPoint struct{ seconds, value float32 }

// besidePhase is how far outside the run phase a reading may be and still cover part of it.
const besidePhase = 2 * time.Minute

// vmRecord collects the counters of the hypervisor.
type vmRecord struct {
	metrics   map[target.VMMetric]map[string]*vmReadings // by VM
	simulated bool
}

// add takes a sample of the record, if it is one of those.
func (v *vmRecord) add(s *result.Sample, in result.Window) {
	name, ok := strings.CutPrefix(s.Name, metric.HypervisorVM)
	if !ok || in.ToNanos <= in.FromNanos || s.AtNanos < in.FromNanos-int64(besidePhase) || s.AtNanos > in.ToNanos+int64(besidePhase) {
		return
	}
	if v.metrics == nil {
		v.metrics = map[target.VMMetric]map[string]*vmReadings{}
	}
	byVM := v.metrics[target.VMMetric(name)]
	if byVM == nil {
		byVM = map[string]*vmReadings{}
		v.metrics[target.VMMetric(name)] = byVM
	}
	one := byVM[s.Labels["vm"]]
	if one == nil {
		one = &vmReadings{group: s.Labels["vm_group"]}
		byVM[s.Labels["vm"]] = one
	}
	one.points = append(one.points, vmPoint{float32(float64(s.AtNanos) / 1e9), float32(s.Value)})
	v.simulated = v.simulated || s.Labels["simulated"] == "true"
}

// samples are the readings as those of a node.
func (r *vmReadings) samples() []result.Sample {
	list := make([]result.Sample, len(r.points))
	for i, p := range r.points {
		list[i] = result.Sample{AtNanos: int64(float64(p.seconds) * 1e9), Value: float64(p.value)}
	}
	return list
}

// vmResults returns a result for each metric that the hypervisor counted in the run phase.
func (ev *evaluator) vmResults() []result.Evaluated {
	var all []result.Evaluated
	for _, m := range target.VMMetrics() {
		byVM := ev.vms.metrics[m]
		if len(byVM) == 0 {
			continue
		}
		shown := vmTitles[m]
		e := sheet{windows: ev.windows, Evaluated: result.Evaluated{
			Name: metric.HypervisorVM + string(m), Title: shown.title + " (hypervisor)", Type: "metric", Unit: shown.unit, Unasked: true,
			ReportGroup: hypervisorGroup, Hint: shown.note,
			Source:    fmt.Sprintf("Hypervisor metric %s%s of each VM, not of its guest or load", metric.HypervisorVM, m),
			Simulated: ev.manifest.Target.Simulated || ev.vms.simulated, FromNanos: ev.phase.FromNanos, ToNanos: ev.phase.ToNanos,
			Series: []result.Series{}, Stats: []result.Stats{},
		}}
		ev.fillVMs(&e, byVM, m)
		delete(ev.vms.metrics, m)
		if len(e.Series) == 0 {
			continue // such as read time in a run phase without reads; no scenario requested it
		}
		all = append(all, e.Evaluated)
	}
	return all
}

func (ev *evaluator) fillVMs(e *sheet, byVM map[string]*vmReadings, m target.VMMetric) {
	period := periodOfVMs(byVM)
	step := max(ev.stepOf(scenario.Result{}, e.window()), period.Round(time.Second))
	stretch := result.Window{FromNanos: ev.grid.CellStart(e.FromNanos), ToNanos: e.ToNanos}
	lines, groups := []analysis.Line{}, map[string][]analysis.Line{}
	for _, vm := range slices.Sorted(maps.Keys(byVM)) {
		about := period
		if m == target.VMMemory {
			about = 0 // instantaneous
		}
		samples := within(byVM[vm].samples(), ev.phase, period, about)
		if len(samples) == 0 {
			continue
		}
		samples = centred(samples, about)
		l := nodeLine(samples, stretch, step, time.Duration(holdPeriods*float64(period)))
		l.Name = vm
		for i := range l.Values {
			l.Values[i] *= vmTitles[m].factor
		}
		lines = append(lines, l)
		groups[byVM[vm].group] = append(groups[byVM[vm].group], l)
	}
	if len(lines) > vmLinesMax {
		e.Source += fmt.Sprintf("; minimum, mean and maximum of each group (%d VMs); the bundle has every VM", len(lines))
		lines = nil
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			for _, how := range []struct{ aggregate, name string }{{"min", "lowest"}, {"mean", "mean"}, {"max", "highest"}} {
				l := analysis.Combine(groups[group], how.aggregate)
				l.Name = group + ", " + how.name
				lines = append(lines, l)
			}
		}
	}
	for _, l := range lines {
		e.addSeries(result.Series{Name: l.Name, Points: stepPoints(l, stretch.FromNanos, step, e)}, len(lines))
	}
}

// periodOfVMs is samplingPeriod for a possibly very large number of readings.
func periodOfVMs(byVM map[string]*vmReadings) time.Duration {
	var gaps []float64
	for _, r := range byVM {
		for i := 1; i < min(len(r.points), periodReadings); i++ {
			gaps = append(gaps, 1e9*float64(r.points[i].seconds-r.points[i-1].seconds))
		}
	}
	return medianPeriod(gaps)
}

// periodReadings is how many readings of a VM are used to determine its period.
const periodReadings = 1000

// stepPoints returns the points of a line whose steps begin at fromNanos, each at the midpoint of its step.
func stepPoints(l analysis.Line, fromNanos int64, step time.Duration, e *sheet) result.Points {
	points := make(result.Points, len(l.Values))
	for i, v := range l.Values {
		at := float64(fromNanos+int64(i)*int64(step)) + float64(step)/2
		if at >= float64(e.ToNanos) { // shorter than a step
			at = float64(e.FromNanos+e.ToNanos) / 2
		}
		points[i] = result.Point{Seconds: at / 1e9, Value: v}
	}
	return points
}
