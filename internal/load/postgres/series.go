package postgres

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
)

// Gauges are what the server says of itself while a load runs. The number of a gauge is its place here.
var Gauges = []interval.Gauge{
	{Name: "WAL", Unit: "MB/s"}, {Name: "checkpoint writes", Unit: "MB/s", Meaning: interval.GaugeCheckpointWrites},
	{Name: "checkpoints", SoFar: true, Meaning: interval.GaugeCheckpoints},
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
	err = database.ReadCounters(line, values[:])
	return values, err
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

// Series asks the server for its counters while a load runs. Only one goroutine uses it.
type Series struct {
	*database.Asker
	first, last [counterCount]float64
	values      interval.GaugeValues
}

// OpenSeries connects and waits for the first answer. Without Asks the series is nil.
func (s *Server) OpenSeries(ctx context.Context) (*Series, error) {
	if !s.config.Asks() {
		return nil, nil
	}
	asker, line, err := database.Ask(ctx, s.Complete(s.psql(adminRole, "")), seriesQuery(program.Tool{Version: s.Version}.Major()), s.Said)
	if err != nil {
		return nil, err
	}
	r := &Series{Asker: asker}
	if r.first, err = parseCounters(line); err != nil {
		r.Close()
		return nil, err
	}
	r.last = r.first
	return r, nil
}

// Begin returns the values at the start of the load, before which the server had no clients; of an endpoint none.
func (s *Series) Begin() interval.GaugeValues {
	if s == nil {
		return nil
	}
	s.Asker.Begin()
	s.values = gaugesOf(s.first, s.first, s.first, 0)
	return s.values
}

// Look returns new values if the server has answered since the last call, and asks again after a period.
func (s *Series) Look(period time.Duration) (values interval.GaugeValues, fresh bool) {
	if s == nil {
		return nil, false
	}
	line, passed, fresh := s.Asker.Look(period)
	if !fresh {
		return s.values, false
	}
	now, err := parseCounters(line)
	if err != nil {
		return interval.UnknownGauges(len(Gauges)), true
	}
	s.values, s.last = gaugesOf(s.first, s.last, now, passed), now
	return s.values, true
}

// Close ends the connection.
func (s *Series) Close() {
	if s != nil {
		s.Asker.Close()
	}
}
