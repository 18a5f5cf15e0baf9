package fioreport

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// WriteText writes the report in the layout of fio's normal output, which people read and scripts search. Jobs with a rate
// have an additional line: due operations, and how long they waited.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for i := range r.Rows {
		r.Rows[i].text(&b, r.Started.Add(r.Elapsed))
	}
	r.textGroups(&b)
	if len(r.Disks) > 0 {
		b.WriteString("\nDisk stats (read/write):\n")
	}
	for _, d := range r.Disks {
		d.text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d *Disk) text(b *strings.Builder) {
	fmt.Fprintf(b, "  %s: ios=%d/%d, merge=%d/%d, ticks=%d/%d, in_queue=%d, util=%.2f%%\n", d.Name, d.Reads, d.Writes, d.ReadMerges,
		d.WriteMerges, d.ReadMillis, d.WriteMillis, d.QueueMillis, d.Utilization)
}

// WriteHead writes a line for every job, before jobs run.
func WriteHead(w io.Writer, jobs []fiojob.Job) error {
	var b strings.Builder
	for i := range jobs {
		j := &jobs[i]
		fmt.Fprintf(&b, "%s: (g=%d): rw=%s, bs=(R) %s, (W) %s, (T) %s, ioengine=%s, iodepth=%d\n", j.Name, j.Group, j.ReadWrite,
			blocks(j, fiojob.Read), blocks(j, fiojob.Write), blocks(j, fiojob.Trim), j.IOEngine, j.IODepth)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func blocks(j *fiojob.Job, d fiojob.Direction) string {
	low, high := int64(math.MaxInt64), int64(0)
	for _, s := range j.BlockSizes(d) {
		low, high = min(low, s.Bytes), max(high, s.Bytes)
	}
	if high == 0 {
		low, high = j.BlockSize[d], j.BlockSize[d]
	}
	return bytesText(float64(low)) + "-" + bytesText(float64(high))
}

func (row *Row) text(b *strings.Builder, now time.Time) {
	fmt.Fprintf(b, "\n%s: (groupid=%d, jobs=%d): err=%2d", row.Name, row.Group, row.Clones, row.firstErrno())
	if row.Err != nil {
		fmt.Fprintf(b, " (%v)", row.Err)
	}
	fmt.Fprintf(b, ": pid=%d: %s\n", row.PID, now.Format(time.ANSIC))
	if text := row.description(); text != "" {
		fmt.Fprintf(b, "  Description  : [%s]\n", text)
	}
	for _, d := range row.shown() {
		row.textDirection(b, &d)
	}
	if row.Due > 0 {
		fmt.Fprintf(b, "  schedule     : due=%d, never issued=%d, waiting at most=%d", row.Due, row.NotIssued, row.BacklogMax)
		if row.DropAfter > 0 {
			fmt.Fprintf(b, "; dropped when %s late", row.DropAfter)
		}
		b.WriteByte('\n')
	}
	if row.Stalled > 0 {
		fmt.Fprintf(b, "  generator    : did not run for %s\n", row.Stalled.Round(time.Millisecond))
	}
	row.Strain.text(b)
	if n := row.Account.Syncs.Count(); n > 0 {
		fmt.Fprintf(b, "  fsync/fdatasync: %d\n", n)
		textLatency(b, "sync", &row.Account.Syncs)
	}
	row.textClasses(b)
	fmt.Fprintf(b, "  cpu          : usr=%.2f%%, sys=%.2f%%, ctx=%d, majf=%d, minf=%d\n", row.cpuShare(row.Account.UserNanos),
		row.cpuShare(row.Account.SystemNanos), row.Account.Switches, row.Account.MajorFaults, row.Account.MinorFaults)
	fmt.Fprintf(b, "  IO depths    : %s\n", row.levels())
	fmt.Fprintf(b, "     submit    : %s\n", batches(row.Account.Submitted))
	fmt.Fprintf(b, "     complete  : %s\n", batches(row.Account.Completed))
	var total, short [interval.DirectionCount]uint64
	for d := range row.Directions {
		total[d] = row.Directions[d].Operations
		short[d] = row.Directions[d].Errors["short-read"] + row.Directions[d].Errors["short-write"]
	}
	fmt.Fprintf(b, "     issued rwts: total=%d,%d,%d,%d short=%d,%d,%d,0 dropped=0,0,0,0\n", total[0], total[1], total[2],
		row.Account.Syncs.Count(), short[0], short[1], short[2])
	row.textDepth(b)
	if n := row.Account.MismatchCount; n > 0 {
		fmt.Fprintf(b, "     verify    : %d parts are not what was written\n", n)
	}
	row.Steady.text(b)
	fmt.Fprintf(b, "     engine    : %s\n", row.Engine)
}

func (row *Row) textDirection(b *strings.Builder, dir *namedDirection) {
	failed := uint64(0)
	for _, n := range dir.Errors {
		failed += n
	}
	if dir.Operations == 0 && failed == 0 {
		return
	}
	rate := dir.PerSecond(dir.Bytes)
	fmt.Fprintf(b, "  %s: IOPS=%s, BW=%s/s (%s/s)(%s/%dmsec)", dir.name, countText(dir.PerSecond(dir.Operations)), bytesText(rate), decimalText(rate),
		bytesText(float64(dir.Bytes)), millis(dir.Runtime))
	if failed > 0 {
		fmt.Fprintf(b, "; %d errors", failed)
	}
	b.WriteByte('\n')
	if dir.submissions.Count() > 0 {
		textLatency(b, "slat", dir.submissions)
	}
	textLatency(b, "clat", dir.Service)
	textLatency(b, "lat", dir.Response)
	dir.textPriorities(b, row.percentiles(), false)
	p := row.percentiles()
	if row.Due > 0 {
		p.lat = percentilesOf(&row.Job)
	}
	textPercentiles(b, "slat", dir.submissions, p.slat)
	textPercentiles(b, "clat", dir.Service, p.clat)
	textPercentiles(b, "lat", dir.Response, p.lat)
	dir.textPriorities(b, row.percentiles(), true)
	share := 100.0
	if rate > 0 {
		share = min(100, 100*dir.Bandwidth.Mean/rate)
	}
	k := 1.0 / 1024
	fmt.Fprintf(b, "   bw (  KiB/s): min=%5.0f, max=%5.0f, per=%.2f%%, avg=%.2f, stdev=%5.2f, samples=%d\n", dir.Bandwidth.Min*k,
		dir.Bandwidth.Max*k, share, dir.Bandwidth.Mean*k, dir.Bandwidth.StdDev*k, dir.Bandwidth.Samples)
	fmt.Fprintf(b, "   iops        : min=%5.0f, max=%5.0f, avg=%.2f, stdev=%5.2f, samples=%d\n", dir.IOPS.Min, dir.IOPS.Max,
		dir.IOPS.Mean, dir.IOPS.StdDev, dir.IOPS.Samples)
}

// millis rounds to whole milliseconds, but to at least 1: a runtime of 0 would mean that nothing ran.
func millis(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return max(1, d.Round(time.Millisecond).Milliseconds())
}

// timeUnit chooses the unit in which latencies are printed.
func timeUnit(h *stat.Histogram) (name string, nanos float64) {
	name, nanos = "nsec", 1
	for _, next := range []struct {
		name  string
		nanos float64
	}{{"usec", 1e3}, {"msec", 1e6}} {
		if float64(h.Min())/nanos <= 2000 || float64(h.Max())/nanos <= 99_999 {
			if h.Mean()/nanos < 10_000 {
				break
			}
		}
		name, nanos = next.name, next.nanos
	}
	return name, nanos
}

func textLatency(b *strings.Builder, name string, h *stat.Histogram) {
	if h.Count() == 0 {
		return
	}
	unit, nanos := timeUnit(h)
	fmt.Fprintf(b, "%8s (%s): min=%.0f, max=%.0f, avg=%5.2f, stdev=%5.2f\n", name, unit, float64(h.Min())/nanos, float64(h.Max())/nanos,
		h.Mean()/nanos, h.StdDev()/nanos)
}

func textPercentiles(b *strings.Builder, name string, h *stat.Histogram, percentiles []float64) {
	if h.Count() == 0 || len(percentiles) == 0 {
		return
	}
	unit, nanos := timeUnit(h)
	fmt.Fprintf(b, "    %s percentiles (%s):\n", name, unit)
	width := len(fmt.Sprintf("%.0f", h.Quantile(1)/nanos))
	const perLine = 4
	for from := 0; from < len(percentiles); from += perLine {
		var parts []string
		for _, p := range percentiles[from:min(from+perLine, len(percentiles))] {
			parts = append(parts, fmt.Sprintf("%5.2fth=[%*.0f]", p, max(5, width), h.Quantile(p/100)/nanos))
		}
		end := ","
		if from+perLine >= len(percentiles) {
			end = ""
		}
		fmt.Fprintf(b, "     | %s%s\n", strings.Join(parts, ", "), end)
	}
}

func (row *Row) textClasses(b *strings.Builder) {
	nanos, micros, millis := row.latencyClasses()
	for _, c := range []struct {
		unit string
		list shares
	}{{"nsec", nanos}, {"usec", micros}, {"msec", millis}} {
		var parts []string
		for _, s := range c.list {
			if s.percent > 0 {
				parts = append(parts, fmt.Sprintf("%s=%.2f%%", s.label, max(0.01, s.percent)))
			}
		}
		for line := range slices.Chunk(parts, 5) {
			fmt.Fprintf(b, "  lat (%s)   : %s\n", c.unit, strings.Join(line, ", "))
		}
	}
}

// String prints shares as fio does; small values other than zero become 0.1 %.
func (s shares) String() string {
	var parts []string
	for _, c := range s {
		p := c.percent
		if p > 0 {
			p = max(0.1, p)
		}
		parts = append(parts, fmt.Sprintf("%s=%.1f%%", c.label, p))
	}
	return strings.Join(parts, ", ")
}

// textGroups sums up each reporting group.
func (r *Report) textGroups(b *strings.Builder) {
	groups := map[int][]*Row{}
	var order []int
	for i := range r.Rows {
		g := r.Rows[i].Group
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], &r.Rows[i])
	}
	for _, g := range order {
		fmt.Fprintf(b, "\nRun status group %d (all jobs):\n", g)
		if groups[g][0].unified() == directionsMixed {
			textGroup(b, "mixed", groups[g], func(row *Row) *Direction {
				all, _ := row.mixed()
				return &all
			})
			continue
		}
		for d := range interval.DirectionCount {
			textGroup(b, interval.Direction(d).String(), groups[g], func(row *Row) *Direction { return &row.Directions[d] })
		}
	}
}

func textGroup(b *strings.Builder, name string, rows []*Row, of func(*Row) *Direction) {
	var bytes uint64
	low, high := math.Inf(1), 0.0
	short, long := time.Duration(math.MaxInt64), time.Duration(0)
	for _, row := range rows {
		dir := of(row)
		if dir.Operations == 0 {
			continue
		}
		rate := dir.PerSecond(dir.Bytes) / float64(max(1, row.Clones))
		bytes += dir.Bytes
		low, high = min(low, rate), max(high, rate)
		short, long = min(short, dir.Runtime), max(long, dir.Runtime)
	}
	if long == 0 {
		return
	}
	rate := float64(bytes) / long.Seconds()
	fmt.Fprintf(b, "%7s: bw=%s/s (%s/s), %s/s-%s/s (%s/s-%s/s), io=%s (%s), run=%d-%dmsec\n", strings.ToUpper(name),
		bytesText(rate), decimalText(rate), bytesText(low), bytesText(high), decimalText(low), decimalText(high),
		bytesText(float64(bytes)), decimalText(float64(bytes)), millis(short), millis(long))
}

// bytesText prints bytes in powers of 1024 with at most four digits: "48.1MiB", "1333MiB", "4096B".
func bytesText(v float64) string {
	return scaled(v, 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"})
}

// decimalText prints bytes in powers of 1000: "50.4MB".
func decimalText(v float64) string {
	return scaled(v, 1000, []string{"B", "kB", "MB", "GB", "TB", "PB"})
}

// countText prints a number: "9876", "31.2k", "1.05M".
func countText(v float64) string { return scaled(v, 1000, []string{"", "k", "M", "G", "T", "P"}) }

func scaled(v, base float64, units []string) string {
	i := 0
	for v >= 9999.5 && i < len(units)-1 {
		v /= base
		i++
	}
	switch {
	case i == 0 || v >= 99.95:
		return fmt.Sprintf("%.0f%s", v, units[i])
	case v >= 9.995:
		return fmt.Sprintf("%.1f%s", v, units[i])
	}
	return fmt.Sprintf("%.2f%s", v, units[i])
}
