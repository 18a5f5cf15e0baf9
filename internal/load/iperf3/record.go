package iperf3

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// streamsShown is how many streams of a VM have a series of their own.
const streamsShown = 8

// Names of gauges that not every load has.
const (
	gaugeClientCPU   = "client CPU"
	gaugeServerCPU   = "server CPU"
	gaugeReceived    = "received by servers"
	gaugeSent        = "sent by servers"
	gaugeMissing     = "not received"
	gaugeRetransmits = "retransmits"
	gaugeResending   = "retransmit rate"
	gaugeRoundTrip   = "round trip"
	gaugeJitter      = "jitter"
	gaugeSpread      = interval.GaugeStreamSpread
)

// gauges are those of a VM with that many pairs.
func (c *config) gauges(pairs int) []interval.Gauge {
	list := []interval.Gauge{{Name: gaugeClientCPU, Unit: "%"}, {Name: gaugeServerCPU, Unit: "%"}, {Name: gaugeMissing, Unit: "%"}}
	add := func(when bool, name, unit string) {
		if when {
			list = append(list, interval.Gauge{Name: name, Unit: unit})
		}
	}
	add(c.sends, gaugeReceived, "B")
	add(c.receives, gaugeSent, "B")
	add(!c.udp, gaugeRetransmits, "")
	add(!c.udp && c.sends, gaugeResending, "/s")
	add(!c.udp && c.sends, gaugeRoundTrip, "ms")
	add(c.udp, gaugeJitter, "ms")
	n := c.streams * c.directions() * max(1, pairs)
	add(c.streams*max(1, pairs) > 1, gaugeSpread, "%")
	for i := range min(n, streamsShown) {
		add(n > 1, fmt.Sprintf("stream %d", i+1), "MB/s")
	}
	return list
}

// tally is what was recorded of one direction of one pair.
type tally struct {
	bytes, retransmits uint64
	streams            int
}

// record sorts reports into intervals. Only one goroutine uses it.
type record struct {
	program.Recorder
	config    *config
	pairs     []*pair
	tallies   [][2]tally
	names     []interval.Gauge
	values    interval.GaugeValues
	flows     map[int64]*flow // by number of the interval, of those that may be open
	rest      [2]uint64       // bytes of a block that is not complete
	begun     bool
	cut       bool // stopped at its end, so that there are no results of both ends
	concluded bool // with results of both ends
	start     int64
}

func newRecord(c *client, sink load.Sink, start int64) *record {
	n := len(c.workload.Remote.Peers)
	r := &record{Recorder: program.Recorder{Workload: c.workload, Sink: sink}, config: c.config, tallies: make([][2]tally, n), flows: map[int64]*flow{},
		names: c.config.gauges(n), start: start}
	for range r.names {
		r.values = append(r.values, math.NaN())
	}
	r.Gauges = slices.Clone(r.values)
	return r
}

// set changes the value of a gauge that the load may have.
func (r *record) set(name string, value float64) {
	if i := slices.IndexFunc(r.names, func(g interval.Gauge) bool { return g.Name == name }); i >= 0 {
		r.values[i] = value
	}
}

// add takes a report. Its time begins where that of the previous report of the pair ended.
func (r *record) add(rep report) {
	p := r.pairs[rep.pair]
	from := p.at
	if from == 0 {
		from = max(rep.arrived-int64(rep.length), r.start)
	}
	p.at = from + int64(rep.length)
	if rep.omitted {
		return
	}
	if !r.begun {
		r.begun = true
		r.Begin(from)
	}
	got := &r.tallies[rep.pair]
	got[sent].streams, got[received].streams = 0, 0
	var bytes [2]uint64
	for _, s := range rep.streams {
		d := sent
		if s.received {
			d = received
		}
		got[d].streams++
		got[d].bytes += s.bytes
		got[d].retransmits += s.retransmits
		bytes[d] += s.bytes
	}
	for d, n := range bytes {
		r.count(d, from, p.at, n, max(1, p.output.block))
	}
	r.gauge(rep, p)
	r.flow(rep, from, p.at)
	r.release()
}

// count counts bytes that were moved from one time to another. Operations are blocks, as iperf3 writes them.
func (r *record) count(direction int, from, to int64, bytes uint64, block int) {
	whole := r.rest[direction] + bytes
	r.Spread(direction, from, to, whole/uint64(block), bytes)
	r.rest[direction] = whole % uint64(block)
}

// flow is what streams of all pairs moved in one interval.
type flow struct {
	bytes, seconds []float64
}

// flow spreads a report over the intervals of its time, whose borders differ from its own.
func (r *record) flow(rep report, from, to int64) {
	period, n := int64(r.Period()), len(rep.streams)
	for at := from; at < to; {
		slot := at / period
		next := min(to, (slot+1)*period)
		f := r.flows[slot]
		if f == nil {
			f = &flow{make([]float64, n*len(r.pairs)), make([]float64, n*len(r.pairs))}
			r.flows[slot] = f
			delete(r.flows, slot-flowsKept)
		}
		for i, s := range rep.streams {
			if k := rep.pair*n + i; k < len(f.bytes) {
				f.bytes[k] += float64(s.bytes) * float64(next-at) / float64(to-from)
				f.seconds[k] += float64(next-at) / 1e9
			}
		}
		r.setStreams(f)
		r.Gauge(slices.Clone(r.values), next-1)
		at = next
	}
}

// flowsKept is how many intervals may be open: pairs report at their own times.
const flowsKept = 64

// setStreams sets the gauges of streams to what they were in one interval.
func (r *record) setStreams(f *flow) {
	var speeds [2][]float64 // of each direction: a path may be asymmetric
	for k, bytes := range f.bytes {
		if f.seconds[k] == 0 { // its pair has not reported yet
			continue
		}
		speed := bytes / f.seconds[k]
		if k < streamsShown {
			r.set(fmt.Sprintf("stream %d", k+1), speed/1e6)
		}
		d := r.config.direction(k % (r.config.streams * r.config.directions()))
		speeds[d] = append(speeds[d], speed)
	}
	if widest := max(spread(speeds[sent]), spread(speeds[received])); widest >= 0 {
		r.set(gaugeSpread, widest)
	}
}

// spread is the fastest minus the slowest, in percent of the mean; -1 if nothing was moved.
func spread(speeds []float64) float64 {
	sum := 0.0
	for _, s := range speeds {
		sum += s
	}
	if sum == 0 {
		return -1
	}
	return (slices.Max(speeds) - slices.Min(speeds)) / (sum / float64(len(speeds))) * 100
}

// gauge computes what a report says of this VM.
func (r *record) gauge(rep report, p *pair) {
	var trip, jitter time.Duration
	trips := 0
	for _, s := range rep.streams {
		if jitter = max(jitter, s.jitter); s.roundTrip > 0 {
			trip, trips = trip+s.roundTrip, trips+1
		}
	}
	if p.jitter = jitter; trips > 0 {
		p.roundTrip = trip / time.Duration(trips)
	}
	resent := uint64(0)
	for _, s := range rep.streams {
		resent += s.retransmits
	}
	p.resending = float64(resent) / max(rep.length.Seconds(), 1e-9)
	if cpu := p.process.UsedCPU(); cpu >= p.cpu {
		if p.cpu > 0 {
			p.busy = float64(cpu-p.cpu) / max(float64(rep.length), 1) * 100
		}
		p.cpu = cpu
	}
	r.combine()
}

// combine sets the gauges of all pairs: the busiest client, the largest jitter, the mean round trip, all that is sent again; all pairs have as many streams.
func (r *record) combine() {
	var busy, trips, resending float64
	var jitter, trip time.Duration
	for _, p := range r.pairs {
		busy, jitter, resending = max(busy, p.busy), max(jitter, p.jitter), resending+p.resending
		if p.roundTrip > 0 {
			trip, trips = trip+p.roundTrip, trips+1
		}
	}
	if busy > 0 {
		r.set(gaugeClientCPU, busy)
	}
	if trips > 0 {
		r.set(gaugeRoundTrip, float64(trip)/trips/1e6)
	}
	if r.config.sends {
		r.set(gaugeResending, resending)
	}
	if r.config.receives {
		r.set(gaugeJitter, float64(jitter)/1e6)
	}
}

// look notes the CPU time of the clients.
func (r *record) look(now int64) {
	if !r.begun {
		return
	}
	var cpu time.Duration
	var all interval.Effort
	for _, p := range r.pairs {
		cpu += p.process.UsedCPU()
		all.Join(p.process.Effort())
	}
	r.Effort(cpu, all, now)
}

// release delivers the intervals for which all pairs have reported.
func (r *record) release() {
	until := int64(math.MaxInt64)
	for _, p := range r.pairs {
		until = min(until, p.at)
	}
	if until > 0 {
		r.Release(until)
	}
}

// end is when the last report ended.
func (r *record) end() (last int64) {
	for _, p := range r.pairs {
		last = max(last, p.at)
	}
	return last
}

// countResent notes what the clients sent again in all, of a load without results of both ends.
func (r *record) countResent() {
	total := uint64(0)
	for _, t := range r.tallies {
		total += t[sent].retransmits
	}
	r.set(gaugeRetransmits, float64(total))
	r.Gauge(slices.Clone(r.values), r.end()-1)
}

// Finish delivers everything; a load that measured nothing has one interval.
func (r *record) Finish(now int64) {
	if !r.begun {
		r.Begin(min(r.start, now))
	} else if e := r.end(); e > 0 {
		if now = e; !r.concluded && r.config.sends && !r.config.udp {
			r.countResent()
		}
	}
	r.Recorder.Finish(now)
}

// conclude compares with the results of both ends, and notes what the servers found.
func (r *record) conclude() error {
	var local, remote [2]uint64
	var missing, total, retransmits, cpu, jitter float64
	var own float64
	for i, p := range r.pairs {
		if err := r.config.conclude(p, r.tallies[i]); err != nil {
			return err
		}
		own, cpu = max(own, p.output.local.CPU), max(cpu, p.output.remote.CPU)
		for k, s := range p.output.local.Streams {
			if k >= len(p.output.remote.Streams) {
				break
			}
			d, there := r.config.direction(k), p.output.remote.Streams[k]
			local[d], remote[d] = local[d]+s.Bytes.value, remote[d]+there.Bytes.value
			from, to := s, there
			if d == received {
				from, to = there, s
			}
			if from.Retransmits.known {
				retransmits += float64(from.Retransmits.value)
			}
			jitter = max(jitter, to.Jitter)
			switch {
			case r.config.udp && r.config.omit > 0: // counts of datagrams include what was omitted, those of bytes do not
			case r.config.udp:
				missing, total = missing+float64(to.Errors.value), total+float64(max(from.Packets.value, to.Packets.value))
			default:
				missing, total = missing+max(0, float64(from.Bytes.value)-float64(to.Bytes.value)), total+float64(from.Bytes.value)
			}
		}
	}
	r.set(gaugeClientCPU, own)
	r.set(gaugeServerCPU, cpu)
	r.concluded = true
	r.set(gaugeRetransmits, retransmits)
	r.set(gaugeReceived, float64(remote[sent]))
	r.set(gaugeSent, float64(remote[received]))
	r.set(gaugeJitter, jitter*1e3)
	if total > 0 {
		r.set(gaugeMissing, missing/total*100)
	}
	if r.begun {
		r.Gauge(slices.Clone(r.values), r.end()-1)
	}
	return nil
}
