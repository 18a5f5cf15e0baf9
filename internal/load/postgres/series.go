package postgres

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/program"
)

// Gauges are what the server says of itself while a load runs. The number of a gauge is its place here.
var Gauges = []interval.Gauge{
	{Name: "WAL", Unit: "MB/s"}, {Name: "checkpoint writes", Unit: "MB/s"}, {Name: "checkpoints"},
	{Name: "waiting for locks", Unit: "clients"}, {Name: "waiting for I/O", Unit: "clients"}, {Name: "buffer hits", Unit: "%"},
}

// Numbers of an answer, in the order of the query. Those of clients are of the moment, all others count since the server was made.
const (
	counterWAL = iota
	counterCheckpoints
	counterCheckpointBuffers
	clientsLocked
	clientsReading
	counterHits
	counterReads
	counterCount
)

const bufferBytes = 8192

// seriesQuery is one line, for a server of that version.
func seriesQuery(major int) string {
	checkpoints := "checkpoints_timed + checkpoints_req, buffers_checkpoint FROM pg_stat_bgwriter"
	if major >= 17 {
		checkpoints = "num_timed + num_requested, buffers_written FROM pg_stat_checkpointer"
	}
	return "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0'), c.*, a.*, d.* FROM (SELECT " + checkpoints + ") c, " +
		"(SELECT count(*) FILTER (WHERE wait_event_type IN ('Lock', 'LWLock')), count(*) FILTER (WHERE wait_event_type = 'IO') " +
		"FROM pg_stat_activity WHERE usename = '" + Role + "') a, " +
		"(SELECT blks_hit, blks_read FROM pg_stat_database WHERE datname = '" + Role + "') d;\n"
}

// parseCounters reads one answer.
func parseCounters(line string) (values [counterCount]float64, err error) {
	fields := strings.Split(line, "|")
	if len(fields) != counterCount {
		return values, fmt.Errorf("%d fields, want %d: %.80q", len(fields), counterCount, line)
	}
	for i, text := range fields {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return values, fmt.Errorf("field %d: %.80q", i+1, line)
		}
		values[i] = float64(n)
	}
	return values, nil
}

// gaugesOf are the gauges between two answers. Counters that fell were reset, and count from 0.
func gaugesOf(first, before, now [counterCount]float64, passed time.Duration) interval.GaugeValues {
	since := func(i int, earlier [counterCount]float64) float64 {
		if now[i] < earlier[i] {
			return now[i]
		}
		return now[i] - earlier[i]
	}
	perSecond := func(bytes float64) float64 {
		if passed <= 0 {
			return 0
		}
		return bytes / 1e6 / passed.Seconds()
	}
	hits, reads := since(counterHits, before), since(counterReads, before)
	share := 100.0
	if hits+reads > 0 {
		share = 100 * hits / (hits + reads)
	}
	return interval.GaugeValues{perSecond(since(counterWAL, before)), perSecond(since(counterCheckpointBuffers, before) * bufferBytes),
		since(counterCheckpoints, first), now[clientsLocked], now[clientsReading], share}
}

// UnknownGauges are gaps.
func UnknownGauges() interval.GaugeValues {
	values := make(interval.GaugeValues, len(Gauges))
	for i := range values {
		values[i] = math.NaN()
	}
	return values
}

// Series asks the server for its counters, again and again over one connection. Only one goroutine uses it.
type Series struct {
	process *program.Process
	query   string
	in      *os.File
	answers chan string
	waiting bool // for an answer

	first, last [counterCount]float64
	at          time.Time // of the last answer
	values      interval.GaugeValues
}

// firstAnswerMax bounds the wait for the first answer.
const firstAnswerMax = 10 * time.Second

// OpenSeries connects and waits for the first answer. An endpoint is not queried: its series is nil.
func (s *Server) OpenSeries(ctx context.Context) (*Series, error) {
	if s.config.Endpoint != "" {
		return nil, nil
	}
	stdin, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	read, stdout, err := os.Pipe()
	if err != nil {
		_ = write.Close()
		return nil, err
	}
	defer stdout.Close()
	command := s.Complete(s.psql(adminRole, ""))
	command.Stdin, command.Stdout, command.Stderr = stdin, stdout, s.said
	r := &Series{query: seriesQuery(s.Tool("postgres").Major()), in: write, answers: make(chan string, 1)}
	if r.process, err = command.Start(); err != nil {
		_, _ = write.Close(), read.Close()
		return nil, fmt.Errorf("start psql: %w", err)
	}
	go r.listen(read)
	r.ask()
	ctx, cancel := context.WithTimeout(ctx, firstAnswerMax)
	defer cancel()
	select {
	case line, open := <-r.answers:
		if r.waiting = false; open {
			r.first, err = parseCounters(line)
		} else {
			err = io.ErrUnexpectedEOF
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("ask the server for its counters: %w", err)
	}
	r.last = r.first
	return r, nil
}

// Begin returns the values at the start of the load, before which the server had no clients; of an endpoint none.
func (s *Series) Begin() interval.GaugeValues {
	if s == nil {
		return nil
	}
	s.at = time.Now()
	s.values = gaugesOf(s.first, s.first, s.first, 0)
	return s.values
}

// listen passes on answers until the program ends.
func (s *Series) listen(r *os.File) {
	defer close(s.answers)
	defer func() { _ = r.Close() }()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		s.answers <- lines.Text()
	}
}

func (s *Series) ask() {
	if _, err := s.in.WriteString(s.query); err == nil {
		s.waiting = true
	}
}

// Look returns new values if the server has answered since the last call, and asks again after a period.
func (s *Series) Look(period time.Duration) (values interval.GaugeValues, fresh bool) {
	if s == nil {
		return nil, false
	}
	select {
	case line, open := <-s.answers:
		now, err := parseCounters(line)
		if s.waiting = false; !open || err != nil {
			return UnknownGauges(), true
		}
		s.values = gaugesOf(s.first, s.last, now, time.Since(s.at))
		s.last, s.at, fresh = now, time.Now(), true
	default:
	}
	if !s.waiting && time.Since(s.at) >= period {
		s.ask()
	}
	return s.values, fresh
}

// Close ends the connection.
func (s *Series) Close() {
	if s == nil {
		return
	}
	_ = s.in.Close()
	stop := program.Stopper{Process: s.process, Signal: os.Interrupt, Grace: time.Second}
	stop.Begin()
	for range s.answers { // so that listen ends
	}
	_ = s.process.Wait()
	stop.End()
}
