package redis

import (
	"context"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/database"
)

// gauges are what the server says of itself while a load runs. The number of a gauge is its place here.
var gauges = []interval.Gauge{
	{Name: "memory", Unit: "MB"}, {Name: "evictions", Unit: "1/s"}, {Name: "misses", Unit: "1/s"},
	{Name: "append-only file", Unit: "MB"}, {Name: "delayed fsyncs", Unit: "1/s"},
}

// Numbers of an answer. Memory and the size of the file are of the moment, all others count since the server started.
const (
	sizeMemory = iota
	counterEvicted
	counterMissed
	sizeFile
	counterDelayed
	counterCount
)

var counterNames = [counterCount]string{"used_memory", "evicted_keys", "keyspace_misses", "aof_current_size", "aof_delayed_fsync"}

// seriesQuery is one line, and so is its answer. A server without an append-only file does not have the last two.
var seriesQuery = `EVAL "local all=redis.call('INFO','everything') local list={} for i=1,#ARGV do list[i]=string.match(all,'%c'..ARGV[i]..':(%d+)') or '0' end ` +
	`return table.concat(list,'|')" 0 ` + strings.Join(counterNames[:], " ") + "\n"

type counters [counterCount]float64

// parseCounters reads one answer.
func parseCounters(line string) (values counters, err error) {
	err = database.ReadCounters(line, values[:])
	return values, err
}

// gaugesOf are the gauges between two answers.
func gaugesOf(before, now counters, passed time.Duration) interval.GaugeValues {
	perSecond := func(i int) float64 {
		if passed <= 0 {
			return 0
		}
		return max(0, now[i]-before[i]) / passed.Seconds()
	}
	return interval.GaugeValues{now[sizeMemory] / 1e6, perSecond(counterEvicted), perSecond(counterMissed), now[sizeFile] / 1e6, perSecond(counterDelayed)}
}

// series asks the server for its counters while a load runs. Only one goroutine uses it.
type series struct {
	*database.Asker
	last counters
}

func (s *server) openSeries(ctx context.Context) (*series, error) {
	asker, line, err := database.Ask(ctx, s.complete(s.ask()), seriesQuery, s.Said)
	if err != nil {
		return nil, err
	}
	r := &series{Asker: asker}
	if r.last, err = parseCounters(line); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// begin returns the values at the start of the load.
func (s *series) begin() interval.GaugeValues {
	s.Begin()
	return gaugesOf(s.last, s.last, 0)
}

// look returns new values if the server has answered since the last call, and asks again after a period.
func (s *series) look(period time.Duration) (values interval.GaugeValues, fresh bool) {
	line, passed, fresh := s.Look(period)
	if !fresh {
		return nil, false
	}
	now, err := parseCounters(line)
	if err != nil {
		return interval.UnknownGauges(len(gauges)), true
	}
	values, s.last = gaugesOf(s.last, now, passed), now
	return values, true
}
