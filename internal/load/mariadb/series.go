package mariadb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/database"
)

// Gauges are what the server says of itself while a load runs. The number of a gauge is its place here.
var Gauges = []interval.Gauge{
	{Name: "redo log", Unit: "MB/s"}, {Name: "pages read", Unit: "1/s"}, {Name: "pages written", Unit: "1/s"}, {Name: "fsyncs", Unit: "1/s"},
	{Name: "row lock waits", Unit: "1/s"}, {Name: "checkpoint age", Unit: "MB"}, {Name: "buffer hits", Unit: "%"},
}

// Numbers of an answer, in the order of their names. The age of the checkpoint is of the moment, all others count since the server started.
const (
	counterRequests = iota
	counterReads
	checkpointAge
	counterSyncs
	counterLog
	counterPagesRead
	counterPagesWritten
	counterLockWaits
	counterCount
)

var counterNames = [counterCount]string{"INNODB_BUFFER_POOL_READ_REQUESTS", "INNODB_BUFFER_POOL_READS", "INNODB_CHECKPOINT_AGE", "INNODB_DATA_FSYNCS",
	"INNODB_OS_LOG_WRITTEN", "INNODB_PAGES_READ", "INNODB_PAGES_WRITTEN", "INNODB_ROW_LOCK_WAITS"}

// seriesQuery is one line. FIELD keeps the order of the names, whatever the collation is.
var seriesQuery = fmt.Sprintf("SELECT GROUP_CONCAT(VARIABLE_VALUE ORDER BY FIELD(VARIABLE_NAME, %[1]s) SEPARATOR '|') FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME IN (%[1]s);\n",
	"'"+strings.Join(counterNames[:], "','")+"'")

// parseCounters reads one answer.
func parseCounters(line string) (values [counterCount]float64, err error) {
	err = database.ReadCounters(line, values[:])
	return values, err
}

// gaugesOf are the gauges between two answers. Counters that fell were reset, and count from 0.
func gaugesOf(before, now [counterCount]float64, passed time.Duration) interval.GaugeValues {
	since := func(i int) float64 {
		if now[i] < before[i] {
			return now[i]
		}
		return now[i] - before[i]
	}
	perSecond := func(i int) float64 {
		if passed <= 0 {
			return 0
		}
		return since(i) / passed.Seconds()
	}
	share := 100.0
	if requests := since(counterRequests); requests > 0 {
		share = max(0, 100*(1-since(counterReads)/requests))
	}
	return interval.GaugeValues{perSecond(counterLog) / 1e6, perSecond(counterPagesRead), perSecond(counterPagesWritten), perSecond(counterSyncs),
		perSecond(counterLockWaits), now[checkpointAge] / 1e6, share}
}

// Series asks the server for its counters while a load runs. Only one goroutine uses it.
type Series struct {
	*database.Asker
	last   [counterCount]float64
	values interval.GaugeValues
}

// OpenSeries connects and waits for the first answer. Without Asks the series is nil.
func (s *Server) OpenSeries(ctx context.Context) (*Series, error) {
	if !s.config.Asks() {
		return nil, nil
	}
	asker, line, err := database.Ask(ctx, s.Complete(s.client(Role, "")), seriesQuery, s.Said)
	if err != nil {
		return nil, err
	}
	r := &Series{Asker: asker}
	if r.last, err = parseCounters(line); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Begin returns the values at the start of the load; of an endpoint none.
func (s *Series) Begin() interval.GaugeValues {
	if s == nil {
		return nil
	}
	s.Asker.Begin()
	s.values = gaugesOf(s.last, s.last, 0)
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
	s.values, s.last = gaugesOf(s.last, now, passed), now
	return s.values, true
}

// Close ends the connection.
func (s *Series) Close() {
	if s != nil {
		s.Asker.Close()
	}
}
