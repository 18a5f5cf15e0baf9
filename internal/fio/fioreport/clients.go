package fioreport

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Clients are the results of the same jobs on several hosts, final or so far. The word is fio's, whose outputs call hosts
// clients.
type Clients struct {
	Done    bool
	Started time.Time // the common start, by the controller's clock
	Elapsed time.Duration
	Period  time.Duration // of samples
	Hosts   []Client
}

// Client is one host.
type Client struct {
	Name    string // as the user named it
	Address string
	Port    int
	Report  *Report // the last one received; nil: none. Its rows have their jobs.
	// Own are the options that each job sets itself as this host read them, by position.
	Own map[string][]syntax.Option
	Err error // the host was lost or failed; the error names it, and Report is the last one before

	Hostname, Platform string // as the host reports them; "" if it was never reached
	// ClockOffset is how far its wall clock was ahead at the start, ClockError the uncertainty of that.
	ClockOffset, ClockError time.Duration
	// StartLate is the time from the common start to the start of its first thread, in the worst of the phases; 0: not
	// known.
	StartLate time.Duration
}

// AllClients is the name of the row that merges all rows, as in fio's output.
const AllClients = "All clients"

// state describes the state of a host.
func (h *Client) state(done bool) string {
	switch {
	case h.Err != nil && h.Report == nil:
		return "missing"
	case h.Err != nil && !h.Report.Done:
		return "lost"
	case h.Err != nil:
		return "failed"
	case done || h.Report != nil && h.Report.Done:
		return "done"
	}
	return "running"
}

// span returns the start skew of hosts, and its uncertainty.
func (c *Clients) span() (late, wrong time.Duration) {
	first, last := time.Duration(0), time.Duration(0)
	some := false
	for i := range c.Hosts {
		h := &c.Hosts[i]
		if h.Report == nil || h.StartLate == 0 {
			continue
		}
		if !some || h.StartLate < first {
			first = h.StartLate
		}
		last, some = max(last, h.StartLate), true
		wrong = max(wrong, h.ClockError)
	}
	return last - first, 2 * wrong
}

// rows returns the host's rows, with an error if the host was lost.
func (h *Client) rows() []*Row {
	if h.Report == nil {
		return nil
	}
	out := make([]*Row, len(h.Report.Rows))
	for i, row := range h.Report.Rows {
		if row.Err == nil {
			row.Err = h.Err // the rows do not cover everything that the host did
		}
		out[i] = &row
	}
	return out
}

// rows returns the rows of all hosts.
func (c *Clients) rows() []*Row {
	var out []*Row
	for i := range c.Hosts {
		out = append(out, c.Hosts[i].rows()...)
	}
	return out
}

// all merges all rows.
func (c *Clients) all() Row { return mergeRows(AllClients, c.rows(), c.period()) }

// place identifies rows of several hosts that belong together: those of one job, in order. Their numbers may differ,
// because jobs may have as many clones as a host has CPUs.
type place struct{ job, index int }

// byPlace returns the rows of hosts that belong together, by place, and the order of places.
func (c *Clients) byPlace() (order []place, members map[place][]member) {
	members = map[place][]member{}
	for i := range c.Hosts {
		count := map[int]int{}
		for _, row := range c.Hosts[i].rows() {
			at := place{row.JobIndex, count[row.JobIndex]}
			count[row.JobIndex]++
			if members[at] == nil {
				order = append(order, at)
			}
			members[at] = append(members[at], member{&c.Hosts[i], row})
		}
	}
	slices.SortStableFunc(order, func(a, b place) int { return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.index, b.index)) })
	return order, members
}

// member is a row with its host.
type member struct {
	host *Client
	row  *Row
}

// merged is a row of several hosts, with the rows it was merged from.
type merged struct {
	Row
	members []member
}

// merged returns a row for each place, merged over hosts.
func (c *Clients) merged() []merged {
	order, members := c.byPlace()
	out := make([]merged, len(order))
	for i, at := range order {
		var rows []*Row
		for _, m := range members[at] {
			rows = append(rows, m.row)
		}
		out[i] = merged{mergeRows(rows[0].Name, rows, c.period()), members[at]}
	}
	return out
}

func (c *Clients) period() time.Duration {
	if c.Period <= 0 {
		return SampleDefault
	}
	return c.Period
}

// Failed returns the first error of a host or of its jobs; nil if there was none.
func (c *Clients) Failed() error {
	for i := range c.Hosts {
		h := &c.Hosts[i]
		if h.Err != nil {
			return h.Err
		}
		if h.Report == nil {
			continue
		}
		for k := range h.Report.Rows {
			if row := &h.Report.Rows[k]; row.Err != nil {
				return fmt.Errorf("host %q: job %q: %w", h.Name, row.Name, row.Err)
			}
		}
		if h.Report.LogFault != "" {
			return fmt.Errorf("host %q: its logs are not complete: %s", h.Name, h.Report.LogFault)
		}
	}
	return nil
}

// SampleDefault is the default length of periods for bandwidth and IOPS.
const SampleDefault = 500 * time.Millisecond
