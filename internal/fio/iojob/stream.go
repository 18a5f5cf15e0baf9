package iojob

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// StreamLengthDefault is the default length of a stream's intervals.
const StreamLengthDefault = time.Second

// streamLinesMax bounds the lines that wait for the reader of a stream. Further lines are dropped and counted: a slow
// reader must not slow down the load.
const streamLinesMax = 4096

// stream writes the results of rows while they run, one line of JSON per interval. docs/formats/intervals.md describes the
// lines.
type stream struct {
	length int64
	zero   func() time.Time
	rows   []*rowStream
	of     []*rowStream // by number of clone

	lines chan []byte
	done  chan struct{}

	mu   sync.Mutex
	lost int
	err  error
}

// rowStream is one row: a clone, or the clones of a group with group reporting.
type rowStream struct {
	mu      sync.Mutex
	job     *fiojob.Job
	number  int // of the first clone
	clones  map[int]*cloneProgress
	pending map[int64]*streamed // by number of the interval
}

// cloneProgress is how far the delivery of a clone has come.
type cloneProgress struct {
	until    int64
	finished bool
}

// streamed is the sum of one interval of a row.
type streamed struct {
	start, end                    int64
	traffic                       [interval.DirectionCount]interval.Traffic
	due, never, backlog, inFlight uint64
	stalled, cpu                  int64
	// By clone: backlog and operations in flight at the end of its last piece, and its stalls, which affect the whole
	// process and are the same for all clones.
	backlogOf, inFlightOf, stalledOf map[int]uint64
}

// sameRow reports whether clones of two jobs, the second after the first, share a row.
func sameRow(a, b *fiojob.Job) bool {
	return a.GroupReporting && b.GroupReporting && a.Group == b.Group
}

// newStream starts a stream of clones to w, with intervals of this length.
func newStream(clones []*clone, w io.Writer, length time.Duration, zero func() time.Time) *stream {
	s := &stream{length: int64(length), zero: zero, lines: make(chan []byte, streamLinesMax), done: make(chan struct{})}
	for i, c := range clones {
		if i == 0 || !sameRow(&clones[i-1].job, &c.job) {
			s.rows = append(s.rows, &rowStream{job: &c.job, number: c.number, clones: map[int]*cloneProgress{}, pending: map[int64]*streamed{}})
		}
		row := s.rows[len(s.rows)-1]
		row.clones[c.number] = &cloneProgress{}
		s.of = append(s.of, row)
	}
	go s.write(w)
	return s
}

// write passes lines to the reader until the stream is closed.
func (s *stream) write(w io.Writer) {
	defer close(s.done)
	for line := range s.lines {
		if s.failed() {
			continue
		}
		if _, err := w.Write(line); err != nil {
			s.mu.Lock()
			s.err = fmt.Errorf("write intervals: %w", err)
			s.mu.Unlock()
		}
	}
}

func (s *stream) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// add adds an interval of a clone.
func (s *stream) add(c *clone, iv *interval.Interval) {
	row := s.of[c.number]
	row.mu.Lock()
	defer row.mu.Unlock()
	// By its middle, because the first and the last piece of a load may overlap a boundary by up to a tenth.
	key := (iv.StartNanos + iv.LengthNanos/2) / s.length
	p := row.pending[key]
	if p == nil {
		p = &streamed{start: iv.StartNanos, backlogOf: map[int]uint64{}, inFlightOf: map[int]uint64{}, stalledOf: map[int]uint64{}}
		row.pending[key] = p
	}
	p.add(c.number, iv)
	progress := row.clones[c.number]
	progress.until, progress.finished = iv.EndNanos(), iv.Final
	s.release(row)
}

func (p *streamed) add(clone int, iv *interval.Interval) {
	p.start, p.end = min(p.start, iv.StartNanos), max(p.end, iv.EndNanos())
	for d := range p.traffic {
		p.traffic[d].Add(&iv.Directions[d])
	}
	p.due += iv.Due
	p.never += iv.NeverIssued()
	p.cpu += iv.CPUNanos
	p.backlogOf[clone], p.inFlightOf[clone] = iv.Backlog, iv.InFlight
	p.stalledOf[clone] += uint64(iv.StalledNanos)
}

// finish records that a clone delivers no more.
func (s *stream) finish(c *clone) {
	row := s.of[c.number]
	row.mu.Lock()
	defer row.mu.Unlock()
	row.clones[c.number].finished = true
	s.release(row)
}

// release writes the intervals of a row that are complete.
func (s *stream) release(row *rowStream) {
	finished := true
	until := int64(-1)
	for _, progress := range row.clones {
		if progress.finished {
			continue
		}
		finished = false
		if until < 0 || progress.until < until {
			until = progress.until
		}
	}
	keys := slices.Sorted(maps.Keys(row.pending))
	for i, key := range keys {
		if !finished && (key+1)*s.length > until {
			return
		}
		s.emit(row, row.pending[key], finished && i == len(keys)-1)
		delete(row.pending, key)
	}
}

func (s *stream) emit(row *rowStream, p *streamed, final bool) {
	for clone := range p.backlogOf {
		p.backlog += p.backlogOf[clone]
		p.inFlight += p.inFlightOf[clone]
		p.stalled = max(p.stalled, int64(p.stalledOf[clone]))
	}
	line := jsonStreamed{
		Job: row.job.Name, Clone: row.number + 1, Clones: len(row.clones), Group: row.job.Group, StartNanos: p.start, EndNanos: p.end,
		UnixNanos: s.zero().UnixNano() + p.end, Due: p.due, NotIssued: p.never, Backlog: p.backlog, InFlight: p.inFlight,
		StalledNanos: p.stalled, CPUNanos: p.cpu, Final: final,
	}
	for d, active := range directionsOf(row.job) {
		if t := &p.traffic[d]; !active && t.Operations == 0 && len(t.Errors) == 0 {
			continue // only directions of rw; replays and verification have others
		}
		out := streamedDirection(&p.traffic[d], p.end-p.start)
		switch interval.Direction(d) {
		case interval.Read:
			line.Read = out
		case interval.Write:
			line.Write = out
		case interval.Trim:
			line.Trim = out
		}
	}
	text, err := json.Marshal(line)
	if err != nil {
		text = fmt.Appendf(nil, `{"error":%q}`, err)
	}
	select {
	case s.lines <- append(text, '\n'):
	default:
		s.mu.Lock()
		s.lost++
		s.mu.Unlock()
	}
}

// close writes the remaining lines and returns an error if lines are missing.
func (s *stream) close() error {
	for _, row := range s.rows {
		row.mu.Lock()
		for _, progress := range row.clones {
			progress.finished = true
		}
		s.release(row)
		row.mu.Unlock()
	}
	close(s.lines)
	select {
	case <-s.done:
	case <-time.After(streamCloseMax):
		return errors.New("write intervals: reader is not consuming")
	}
	if s.lost > 0 && s.err == nil {
		return fmt.Errorf("write intervals: %d lines are missing, because they were read too slowly", s.lost)
	}
	return s.err
}

// streamCloseMax is how long the end of a run waits for a reader.
var streamCloseMax = 10 * time.Second

// jsonStreamed is a line. Times are nanoseconds.
type jsonStreamed struct {
	Job          string                 `json:"job"`
	Clone        int                    `json:"clone"`
	Clones       int                    `json:"clones"`
	Group        int                    `json:"groupid"`
	StartNanos   int64                  `json:"start_ns"`
	EndNanos     int64                  `json:"end_ns"`
	UnixNanos    int64                  `json:"unix_ns"`
	Read         *jsonStreamedDirection `json:"read,omitempty"`
	Write        *jsonStreamedDirection `json:"write,omitempty"`
	Trim         *jsonStreamedDirection `json:"trim,omitempty"`
	Due          uint64                 `json:"due"`
	NotIssued    uint64                 `json:"not_issued"`
	Backlog      uint64                 `json:"backlog"`
	InFlight     uint64                 `json:"in_flight"`
	StalledNanos int64                  `json:"stalled_ns"`
	CPUNanos     int64                  `json:"cpu_ns"`
	Final        bool                   `json:"final,omitempty"`
}

type jsonStreamedDirection struct {
	Operations uint64            `json:"ops"`
	Bytes      uint64            `json:"bytes"`
	IOPS       fioreport.Decimal `json:"iops"`
	BytesRate  fioreport.Decimal `json:"bw_bytes"`
	Errors     map[string]uint64 `json:"errors,omitempty"`
	Service    *jsonQuantiles    `json:"service_ns,omitempty"`
	Response   *jsonQuantiles    `json:"response_ns,omitempty"`
}

// jsonQuantiles sums up latencies; omitted if no operation completed.
type jsonQuantiles struct {
	Mean fioreport.Decimal `json:"mean"`
	Min  uint64            `json:"min"`
	P50  uint64            `json:"p50"`
	P90  uint64            `json:"p90"`
	P95  uint64            `json:"p95"`
	P99  uint64            `json:"p99"`
	P999 uint64            `json:"p99.9"`
	Max  uint64            `json:"max"`
}

func streamedDirection(t *interval.Traffic, length int64) *jsonStreamedDirection {
	out := &jsonStreamedDirection{
		Operations: t.Operations, Bytes: t.Bytes, Errors: t.Errors, Service: quantiles(t.Service), Response: quantiles(t.ResponseOrService()),
	}
	if length > 0 {
		out.IOPS, out.BytesRate = fioreport.Decimal(float64(t.Operations)*1e9/float64(length)), fioreport.Decimal(float64(t.Bytes)*1e9/float64(length))
	}
	return out
}

func quantiles(h *stat.Histogram) *jsonQuantiles {
	if h == nil || h.Count() == 0 {
		return nil
	}
	at := func(q float64) uint64 { return uint64(h.Quantile(q)) }
	return &jsonQuantiles{
		Mean: fioreport.Decimal(h.Mean()), Min: h.Min(), P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99), P999: at(0.999), Max: h.Max(),
	}
}
