package fioreport

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// tersePercentiles is the number of fields for percentiles; unused ones are 0%=0.
const tersePercentiles = 20

// Terse defines the format of terse lines.
type Terse struct {
	Layout  int    // 2 to 5, as fio's --terse-version; 0 is 3
	Release string // of fio, as FormatVersion
}

// WriteTerse writes a line for each row with the fields of fio's terse output. Latencies are in microseconds, rates in KiB
// per second. Layout 2 has no release and no disks; 2, 4 and 5 have trims; 5 counts samples, and has IOPS.
func (r *Report) WriteTerse(w io.Writer, o Terse) error {
	layout := cmp.Or(o.Layout, 3)
	var b strings.Builder
	for i := range r.Rows {
		row := &r.Rows[i]
		f := &terse{layout: layout}
		f.Add(layout)
		if layout != 2 {
			f.Add(o.Release)
		}
		f.Add(strings.ReplaceAll(row.Name, ";", ","), row.Group, errno(row.Err))
		f.directions(row)
		f.Add(fmt.Sprintf("%f%%", row.cpuShare(row.Account.UserNanos)), fmt.Sprintf("%f%%", row.cpuShare(row.Account.SystemNanos)),
			row.Account.Switches, row.Account.MajorFaults, row.Account.MinorFaults)
		f.shares(row.levels(), 1)
		_, micros, millis := row.latencyClasses()
		f.shares(micros, 2)
		f.shares(millis, 2)
		for _, d := range r.Disks {
			if layout == 2 {
				break
			}
			f.Add(d.Name, d.Reads, d.Writes, d.ReadMerges, d.WriteMerges, d.ReadMillis, d.WriteMillis, d.QueueMillis,
				fmt.Sprintf("%.2f%%", d.Utilization))
		}
		if outlives(&row.Job) {
			f.Add(row.errorCount(), row.Account.FirstError)
		}
		line := strings.Join(f.fields, ";")
		if text := valueOf(&row.Job, "description"); text != "" {
			if layout == 2 {
				line += "\n"
			}
			line += ";" + strings.ReplaceAll(text, ";", ",")
		}
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

type terse struct {
	fields []string
	layout int
}

// directions writes the directions of a row separately, as one, or both, according to unified_rw_reporting.
func (f *terse) directions(row *Row) {
	percentiles := percentilesOf(&row.Job)
	how := row.unified()
	if how != directionsMixed {
		for d := range row.Directions {
			if d != int(interval.Trim) || f.layout != 3 {
				f.direction(&row.Directions[d], &row.Account.Submissions[d], percentiles)
			}
		}
	}
	if how != directionsApart {
		all, submissions := row.mixed()
		f.direction(&all, &submissions, percentiles)
	}
}

func (f *terse) Add(values ...any) {
	for _, v := range values {
		f.fields = append(f.fields, fmt.Sprint(v))
	}
}

func (f *terse) direction(d *Direction, slat *stat.Histogram, percentiles []float64) {
	rate := d.PerSecond(d.Bytes)
	f.Add(d.Bytes>>10, uint64(rate)>>10, uint64(d.PerSecond(d.Operations)), millis(d.Runtime))
	f.latency(slat)
	f.latency(d.Service)
	for i := range tersePercentiles {
		switch {
		case i >= len(percentiles):
			f.Add("0%=0")
		case d.Service.Count() == 0:
			f.Add(fmt.Sprintf("%f%%=0", percentiles[i]))
		default:
			// Truncated and not rounded, as in fio.
			f.Add(fmt.Sprintf("%f%%=%d", percentiles[i], uint64(d.Service.Quantile(percentiles[i]/100))/1000))
		}
	}
	f.latency(d.Response)
	share := 0.0
	if rate > 0 {
		share = min(100, 100*d.Bandwidth.Mean/rate)
	}
	f.Add(uint64(d.Bandwidth.Min)>>10, uint64(d.Bandwidth.Max)>>10, fmt.Sprintf("%f%%", share),
		fmt.Sprintf("%f", d.Bandwidth.Mean/1024), fmt.Sprintf("%f", d.Bandwidth.StdDev/1024))
	if f.layout == 5 {
		f.Add(d.Bandwidth.Samples, uint64(d.IOPS.Min), uint64(d.IOPS.Max), fmt.Sprintf("%f", d.IOPS.Mean), fmt.Sprintf("%f", d.IOPS.StdDev),
			d.IOPS.Samples)
	}
}

func (f *terse) latency(h *stat.Histogram) {
	if h.Count() == 0 {
		f.Add("0", "0", "0.000000", "0.000000")
		return
	}
	f.Add(h.Min()/1000, h.Max()/1000, fmt.Sprintf("%f", h.Mean()/1e3), fmt.Sprintf("%f", h.StdDev()/1e3))
}

func (f *terse) shares(list shares, decimals int) {
	for _, s := range list {
		f.Add(fmt.Sprintf("%.*f%%", decimals, s.percent))
	}
}
