package fioreport

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
)

// WriteText writes the rows of each host after its name, then each job merged over hosts and the spread of the hosts.
func (c *Clients) WriteText(w io.Writer) error {
	var b strings.Builder
	c.textHosts(&b)
	now := c.Started.Add(c.Elapsed)
	for i := range c.Hosts {
		h := &c.Hosts[i]
		for _, row := range h.rows() {
			row.Name = "<" + h.Name + "> " + row.Name
			row.text(&b, now)
		}
	}
	for _, row := range c.merged() {
		row.Name = "<all hosts> " + row.Name
		row.text(&b, now)
		for d := range row.Directions {
			row.textStandings(&b, interval.Direction(d))
		}
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		if h.Report == nil || len(h.Report.Disks) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n<%s> Disk stats (read/write):\n", h.Name)
		for _, d := range h.Report.Disks {
			d.text(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// textHosts lists the hosts and the offsets of their clocks.
func (c *Clients) textHosts(b *strings.Builder) {
	late, wrong := c.span()
	fmt.Fprintf(b, "\nHosts: %d, common start %s, begun within %s (±%s)\n", len(c.Hosts), c.Started.UTC().Format("2006-01-02T15:04:05.000000Z"),
		short(late), short(wrong))
	width := 0
	for i := range c.Hosts {
		width = max(width, len(c.Hosts[i].Name))
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		fmt.Fprintf(b, "  %-*s : %s", width, h.Name, h.state(c.Done))
		if h.Platform != "" {
			fmt.Fprintf(b, ", %s (%s), clock %s ahead ±%s", h.Hostname, h.Platform, short(h.ClockOffset), short(h.ClockError))
		}
		if h.StartLate != 0 {
			fmt.Fprintf(b, ", began %s after the start", short(h.StartLate))
		}
		if h.Err != nil {
			fmt.Fprintf(b, ": %s", strings.TrimPrefix(h.Err.Error(), fmt.Sprintf("host %q: ", h.Name)))
		}
		b.WriteByte('\n')
	}
}

// short rounds a duration for display.
func short(d time.Duration) time.Duration {
	if d.Abs() < time.Millisecond {
		return d.Round(100 * time.Nanosecond)
	}
	return d.Round(time.Microsecond)
}

// textStandings lists hosts by their rate in one direction, the slowest first.
func (m *merged) textStandings(b *strings.Builder, d interval.Direction) {
	if m.Directions[d].Operations == 0 || len(m.members) < 2 {
		return
	}
	list := m.standings(d)
	width := 0
	for i := range list {
		width = max(width, len(list[i].host))
	}
	mean := 0.0
	for i := range list {
		mean += list[i].iops() / float64(len(list))
	}
	unit, nanos := timeUnit(m.Directions[d].Service)
	fmt.Fprintf(b, "  hosts (%s), slowest first; clat in %s:\n", d, unit)
	for i := range list {
		s := &list[i]
		fmt.Fprintf(b, "     %-*s : IOPS=%s (%+.1f%% of mean), BW=%s/s", width, s.host, countText(s.iops()), 100*(s.iops()-mean)/cmp.Or(mean, 1),
			bytesText(s.dir.PerSecond(s.dir.Bytes)))
		if h := s.dir.Service; h.Count() > 0 {
			fmt.Fprintf(b, ", p50=%.0f, p99=%.0f, p99.9=%.0f, max=%.0f", h.Quantile(0.5)/nanos, h.Quantile(0.99)/nanos, h.Quantile(0.999)/nanos,
				float64(h.Max())/nanos)
		}
		b.WriteByte('\n')
	}
}

// WriteTerse writes a line for each row of each host, and a last one that merges all, as fio's client does.
func (c *Clients) WriteTerse(w io.Writer, o Terse) error {
	for i := range c.Hosts {
		if r := c.Hosts[i].Report; r != nil {
			shown := Report{Disks: r.Disks}
			for _, row := range c.Hosts[i].rows() {
				shown.Rows = append(shown.Rows, *row)
			}
			if err := shown.WriteTerse(w, o); err != nil {
				return err
			}
		}
	}
	return (&Report{Rows: []Row{c.all()}}).WriteTerse(w, o)
}
