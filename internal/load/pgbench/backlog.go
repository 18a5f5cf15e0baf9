package pgbench

import (
	"math"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// thread is what the log of a thread of pgbench tells of its schedule. Each thread draws its own: the times between two intended starts
// are exponential, and a client that is free draws the next one.
type thread struct {
	clients int           // that it has
	ends    map[int]int64 // of the last transaction of each client, on the axis
	due     int64         // the latest intended start of a transaction that was begun; 0: none
	failed  uint64        // transactions after that one which failed: their intended start is not in the log
}

// threads deals clients out as pgbench does.
func threads(clients, count int) (list []thread) {
	for i := range count {
		n := (clients + count - i - 1) / (count - i)
		list, clients = append(list, thread{clients: n, ends: map[int]int64{}}), clients-n
	}
	return list
}

func (t *thread) add(client int, o program.Operation) {
	t.ends[client] = max(t.ends[client], o.End)
	switch due := o.End - o.Latency; {
	case o.Skipped: // never begun
	case o.Failed != "":
		t.failed++
	case due > t.due:
		t.due, t.failed = due, 0
	}
}

// neverBegun estimates how many transactions were due before the end of the load and not begun. pgbench draws an intended start only when a client
// is free, and does not say how far it is behind. So none is waiting if a client was free at the end. If all were busy, nothing after the last
// intended start was drawn: the rate times the time since then is what the rest of the schedule has on average.
func (t *thread) neverBegun(end int64, rate float64) float64 {
	if len(t.ends) < t.clients || t.due == 0 {
		return 0
	}
	for _, last := range t.ends {
		if last < end {
			return 0
		}
	}
	return max(0, rate*float64(end-t.due)/1e9-float64(t.failed))
}

// neverBegun is that of all threads. No transaction begins after the alarm that ends the load, so that the alarm was no earlier than the
// start of the last one.
func (l *logs) neverBegun(alarm int64) uint64 {
	sum := 0.0
	for _, f := range l.files {
		sum += f.thread.neverBegun(max(alarm, l.begun), l.config.rate/float64(len(l.files)))
	}
	return uint64(math.Round(sum))
}

// ending completes the last interval of a load by the transactions that were still waiting.
type ending struct {
	load.Sink
	waiting uint64
}

func (e *ending) Interval(iv interval.Interval) {
	if iv.Final {
		iv.Due, iv.Backlog = iv.Due+e.waiting, e.waiting
	}
	e.Sink.Interval(iv)
}
