package fioreport

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/interval"
)

// jsonClients is the document that fio's client prints: the rows of all hosts one after the other, and a last row that
// merges all. Bragg's part, under "bragg", has the hosts with their clocks, and each job merged over hosts.
type jsonClients struct {
	Version   string            `json:"fio version"`
	Timestamp int64             `json:"timestamp"`
	Time      string            `json:"time"`
	Global    map[string]string `json:"global options,omitempty"`
	Stats     []any             `json:"client_stats"`
	Disks     []jsonClientDisk  `json:"disk_util"`
	Bragg     jsonHosts         `json:"bragg"`
}

// jsonClient is a row of one host. Its members that hide those of jsonJob are absent from the output of fio's client.
type jsonClient struct {
	jsonJob
	ETA      *int   `json:"eta,omitempty"`
	Elapsed  *int   `json:"elapsed,omitempty"`
	Hostname string `json:"hostname"`
	Port     int    `json:"port"`
}

// jsonMerged is a row of several hosts.
type jsonMerged struct {
	jsonClient
	Options    *int `json:"job options,omitempty"`
	Depth      *int `json:"latency_depth,omitempty"`
	Target     *int `json:"latency_target,omitempty"`
	Percentile *int `json:"latency_percentile,omitempty"`
	Window     *int `json:"latency_window,omitempty"`
}

// jsonJobOfHosts is a job merged over hosts, with the differences between them.
type jsonJobOfHosts struct {
	jsonJob
	ETA     *int                  `json:"eta,omitempty"`
	Elapsed *int                  `json:"elapsed,omitempty"`
	Hosts   int                   `json:"hosts"`
	Spread  map[string]jsonSpread `json:"spread"`
}

// jsonSpread compares hosts in one direction of a job.
type jsonSpread struct {
	Slowest     string  `json:"slowest"`
	Fastest     string  `json:"fastest"`
	SlowestIOPS Decimal `json:"slowest_iops"`
	FastestIOPS Decimal `json:"fastest_iops"`
	Ratio       Decimal `json:"ratio"` // of the fastest to the slowest, 0 if the slowest did nothing
	BestP99     float64 `json:"p99_lowest_ns"`
	WorstP99    float64 `json:"p99_highest_ns"`
}

type jsonHosts struct {
	Started     string           `json:"started"`
	ElapsedNano int64            `json:"elapsed_ns"`
	StartSpread int64            `json:"start_spread_ns"`
	StartError  int64            `json:"start_error_ns"`
	Hosts       []jsonHost       `json:"hosts"`
	Jobs        []jsonJobOfHosts `json:"jobs"`
	Notes       []string         `json:"notes,omitempty"`
}

type jsonHost struct {
	Name        string `json:"name"`
	Hostname    string `json:"hostname"`
	Platform    string `json:"platform"`
	State       string `json:"state"`
	Error       string `json:"error,omitempty"`
	ElapsedNano int64  `json:"elapsed_ns"`
	ClockOffset int64  `json:"clock_offset_ns"`
	ClockError  int64  `json:"clock_error_ns"`
	StartLate   int64  `json:"start_late_ns,omitempty"`
}

type jsonClientDisk struct {
	jsonDisk
	Hostname string `json:"hostname"`
	Port     int    `json:"port"`
}

// WriteJSON writes the report with the keys of the JSON of fio's client.
func (c *Clients) WriteJSON(w io.Writer, l Labels) error {
	if l.Own == nil {
		l.Own = func(*fiojob.Job) []syntax.Option { return nil }
	}
	now := c.Started.Add(c.Elapsed)
	doc := jsonClients{
		Version: l.Version, Timestamp: now.Unix(), Time: now.Format(time.ANSIC), Global: options(l.Global), Stats: []any{},
		Disks: []jsonClientDisk{}, Bragg: c.jsonHosts(l),
	}
	last := &Client{}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		if h.Report == nil {
			continue
		}
		last = h
		labels := h.labels(l)
		for _, row := range h.rows() {
			doc.Stats = append(doc.Stats, jsonClient{jsonJob: h.Report.jsonJob(row, labels), Hostname: h.Address, Port: h.Port})
		}
		for _, d := range h.Report.Disks {
			doc.Disks = append(doc.Disks, jsonClientDisk{d.json(), h.Address, h.Port})
		}
	}
	all := c.all()
	// fio prints the address of the last client beside the sum, and readers may require the members.
	doc.Stats = append(doc.Stats, jsonMerged{jsonClient: jsonClient{
		jsonJob: (&Report{}).jsonJob(&all, l), Hostname: last.Address, Port: last.Port,
	}})
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// labels are the labels of this host, whose jobs may have read other options.
func (h *Client) labels(l Labels) Labels {
	if h.Own != nil {
		l.Own = func(j *fiojob.Job) []syntax.Option { return h.Own[j.Pos.String()] }
	}
	return l
}

func (c *Clients) jsonHosts(l Labels) jsonHosts {
	late, wrong := c.span()
	out := jsonHosts{
		Started: c.Started.UTC().Format(time.RFC3339Nano), ElapsedNano: int64(c.Elapsed), StartSpread: int64(late), StartError: int64(wrong),
		Hosts: []jsonHost{}, Jobs: []jsonJobOfHosts{}, Notes: l.Notes,
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		one := jsonHost{
			Name: h.Name, Hostname: h.Hostname, Platform: h.Platform, State: h.state(c.Done), ClockOffset: int64(h.ClockOffset),
			ClockError: int64(h.ClockError), StartLate: int64(h.StartLate),
		}
		if h.Err != nil {
			one.Error = h.Err.Error()
		}
		if h.Report != nil {
			one.ElapsedNano = int64(h.Report.Elapsed)
		}
		out.Hosts = append(out.Hosts, one)
	}
	for _, row := range c.merged() {
		j := jsonJobOfHosts{jsonJob: (&Report{}).jsonJob(&row.Row, row.members[0].host.labels(l)), Hosts: len(row.members), Spread: map[string]jsonSpread{}}
		for d := range row.Directions {
			if row.Directions[d].Operations > 0 {
				j.Spread[interval.Direction(d).String()] = spreadOfHosts(row.standings(interval.Direction(d)))
			}
		}
		out.Jobs = append(out.Jobs, j)
	}
	return out
}

// standing is the result of one host in one direction of a job.
type standing struct {
	host string
	dir  *Direction
}

func (s *standing) iops() float64 { return s.dir.PerSecond(s.dir.Operations) }

// standings compares the hosts of a row, the slowest first.
func (m *merged) standings(d interval.Direction) []standing {
	out := make([]standing, len(m.members))
	for i, one := range m.members {
		out[i] = standing{one.host.Name, &one.row.Directions[d]}
	}
	slices.SortStableFunc(out, func(a, b standing) int { return cmp.Compare(a.iops(), b.iops()) })
	return out
}

func spreadOfHosts(list []standing) jsonSpread {
	slowest, fastest := &list[0], &list[len(list)-1]
	out := jsonSpread{
		Slowest: slowest.host, Fastest: fastest.host, SlowestIOPS: Decimal(slowest.iops()), FastestIOPS: Decimal(fastest.iops()),
	}
	if slowest.iops() > 0 {
		out.Ratio = Decimal(fastest.iops() / slowest.iops())
	}
	for i := range list {
		if list[i].dir.Service.Count() == 0 {
			continue
		}
		p := list[i].dir.Service.Quantile(0.99)
		if out.BestP99 == 0 || p < out.BestP99 {
			out.BestP99 = p
		}
		out.WorstP99 = max(out.WorstP99, p)
	}
	return out
}
