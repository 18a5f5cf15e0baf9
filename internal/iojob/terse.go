package iojob

import (
	"fmt"
	"io"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// tersePercentiles is how many fields percentiles take; unused ones are 0%=0.
const tersePercentiles = 20

// WriteTerse writes a line for each row with the fields of fio's terse output, version 3. Latencies are in microseconds,
// rates in KiB a second.
func (r *Report) WriteTerse(w io.Writer, version string) error {
	var b strings.Builder
	for i := range r.Rows {
		row := &r.Rows[i]
		f := &terse{}
		f.add("3", version, strings.ReplaceAll(row.Name, ";", ","))
		f.add(row.Group, errno(row.Err))
		for _, d := range []interval.Direction{interval.Read, interval.Write} {
			f.direction(&row.Directions[d], &row.Account.Submissions[d], percentilesOf(&row.Job))
		}
		f.add(fmt.Sprintf("%f%%", row.cpuShare(row.Account.UserNanos)), fmt.Sprintf("%f%%", row.cpuShare(row.Account.SystemNanos)),
			row.Account.Switches, row.Account.MajorFaults, row.Account.MinorFaults)
		f.shares(row.levels(), 1)
		_, micros, millis := row.latencyClasses()
		f.shares(micros, 2)
		f.shares(millis, 2)
		for _, d := range r.Disks {
			f.add(d.Name, d.Reads, d.Writes, d.ReadMerges, d.WriteMerges, d.ReadMillis, d.WriteMillis, d.QueueMillis,
				fmt.Sprintf("%.2f%%", d.Utilization))
		}
		b.WriteString(strings.Join(f.fields, ";") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

type terse struct{ fields []string }

func (f *terse) add(values ...any) {
	for _, v := range values {
		f.fields = append(f.fields, fmt.Sprint(v))
	}
}

func (f *terse) direction(d *Direction, slat *stat.Histogram, percentiles []float64) {
	rate := d.PerSecond(d.Bytes)
	f.add(d.Bytes>>10, uint64(rate)>>10, uint64(d.PerSecond(d.Operations)), millis(d.Runtime))
	f.latency(slat)
	f.latency(d.Service)
	for i := range tersePercentiles {
		switch {
		case i >= len(percentiles):
			f.add("0%=0")
		case d.Service.Count() == 0:
			f.add(fmt.Sprintf("%f%%=0", percentiles[i]))
		default:
			f.add(fmt.Sprintf("%f%%=%.0f", percentiles[i], d.Service.Quantile(percentiles[i]/100)/1e3))
		}
	}
	f.latency(d.Response)
	share := 0.0
	if rate > 0 {
		share = min(100, 100*d.Bandwidth.Mean/rate)
	}
	f.add(uint64(d.Bandwidth.Min)>>10, uint64(d.Bandwidth.Max)>>10, fmt.Sprintf("%f%%", share),
		fmt.Sprintf("%f", d.Bandwidth.Mean/1024), fmt.Sprintf("%f", d.Bandwidth.StdDev/1024))
}

func (f *terse) latency(h *stat.Histogram) {
	if h.Count() == 0 {
		f.add("0", "0", "0.000000", "0.000000")
		return
	}
	f.add(h.Min()/1000, h.Max()/1000, fmt.Sprintf("%f", h.Mean()/1e3), fmt.Sprintf("%f", h.StdDev()/1e3))
}

func (f *terse) shares(list shares, decimals int) {
	for _, s := range list {
		f.add(fmt.Sprintf("%.*f%%", decimals, s.percent))
	}
}
