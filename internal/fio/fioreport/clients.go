package fioreport

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Clients is what came of the same jobs on several hosts, or what has come of them so far. The word is fio's, whose
// documents call hosts clients.
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
	Report  *Report // the last that came; nil: none. Its rows have their jobs.
	// Own are the options of jobs as this host read them, by position.
	Own map[string][]syntax.Option
	Err error // it was lost or failed, in words that name it: Report is what came before

	Hostname, Platform string // what it says of itself; "" where it was never reached
	// ClockOffset is how far its wall clock was ahead at the start, ClockError how wrong that can be.
	ClockOffset, ClockError time.Duration
	// StartLate is how long after the common start the first of its threads began, in the worst of the phases; 0: not known.
	StartLate time.Duration
}

// AllClients is the name of the row that is merged of all, in fio's documents.
const AllClients = "All clients"

// state says how a host fared.
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

// span returns how far apart hosts began, and how wrong that can be.
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

// rows returns the host's rows; those of a host that was lost say so.
func (h *Client) rows() []*Row {
	if h.Report == nil {
		return nil
	}
	out := make([]*Row, len(h.Report.Rows))
	for i, row := range h.Report.Rows {
		if row.Err == nil {
			row.Err = h.Err // what is there is not all that the host did
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

// all merges everything.
func (c *Clients) all() Row { return mergeRows(AllClients, c.rows(), c.period()) }

// place names rows of several hosts that belong together: those of one job, in their order. Their numbers may differ,
// because jobs may have as many clones as a host has CPUs.
type place struct{ job, index int }

// byPlace returns the rows of hosts that belong together, and the order of places.
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

// merged is a row of several hosts, with what it was made of.
type merged struct {
	Row
	members []member
}

// merged returns a row for each that hosts have in common.
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

// Failed returns the first error of a host or of its jobs; nil where all went well.
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

// SampleDefault is how long the periods are that bandwidth and IOPS are of.
const SampleDefault = 500 * time.Millisecond
