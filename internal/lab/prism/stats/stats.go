// Package stats is where the emulator of Prism has its statistics from. The default source is simulated: figures that depend only on the
// entity, the metric and the second, so that a test knows what a client must read.
//
//	v4, v2 ──▶ Read(source, query) ──▶ samples at multiples of the interval, by Source.Value for each second
package stats

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"
)

// Source has a figure for each second.
type Source interface {
	// Value returns the figure of a metric of an entity in the second that begins at the time; false: there is none. Metrics have the names
	// of v4: controllerNumIops.
	Value(entity Entity, metric string, at time.Time) (float64, bool)
}

// Entity is what statistics are of.
type Entity struct{ Kind, ID string }

// Kinds of entities.
const (
	VM        = "vm"
	VMDisk    = "vm-disk"
	NIC       = "nic"
	Host      = "host"
	Cluster   = "cluster"
	Disk      = "disk"
	Container = "storage-container"
)

// Simulated is the default source.
type Simulated struct{}

// Value is a wave of a minute around a figure that is typical for the metric and differs between entities. Sums are those of their parts.
func (s Simulated) Value(e Entity, metric string, at time.Time) (float64, bool) {
	part := func(metric string) float64 {
		v, _ := s.Value(e, metric, at)
		return v
	}
	if parts := sums[metric]; len(parts) > 0 {
		return part(parts[0]) + part(parts[1]), true
	}
	if rest := shares[metric]; rest != "" {
		return 1e6 - part(rest), true
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(e.ID + metric))
	base := typical(metric)
	phase := float64(h.Sum32()%60) + float64(at.Unix()%60)
	return math.Round(base * (1 + 0.25*math.Sin(2*math.Pi*phase/60))), true
}

// sums are metrics that two others add up to, and shares those of which another is the rest.
var (
	sums = map[string][]string{
		"controllerNumIops":         {"controllerNumReadIops", "controllerNumWriteIops"},
		"controllerNumIo":           {"controllerNumReadIo", "controllerNumWriteIo"},
		"controllerIoBandwidthKbps": {"controllerReadIoBandwidthKbps", "controllerWriteIoBandwidthKbps"},
		"ioBandwidthKbps":           {"controllerReadIoBandwidthKbps", "controllerWriteIoBandwidthKbps"},
		"controllerIoBandwidthkBps": {"controllerReadIoBandwidthkBps", "controllerWriteIoBandwidthkBps"},
	}
	shares = map[string]string{"controllerSeqIoPpm": "controllerRandomIoPpm", "controllerWriteIoPpm": "controllerReadIoPpm"}
)

// typical is the order of magnitude of a metric, by what its name ends in.
func typical(metric string) float64 {
	for _, one := range []struct {
		has   func(string) bool
		value float64
	}{
		{ends("Ppm"), 250_000}, {ends("Iops"), 1_000}, {ends("Kbps", "kBps"), 64_000}, {ends("Usecs", "Micros", "uSecs"), 800},
		{ends("SizeKb"), 64}, {ends("Bytes"), 1 << 30}, {ends("Mb"), 2_048}, {ends("NumIo", "ReadIo", "WriteIo", "RandomIo", "SeqIo"), 30_000},
	} {
		if one.has(metric) {
			return one.value
		}
	}
	return 100
}

func ends(with ...string) func(string) bool {
	return func(s string) bool {
		return slices.ContainsFunc(with, func(w string) bool { return len(s) >= len(w) && s[len(s)-len(w):] == w })
	}
}

// Query selects samples.
type Query struct {
	Start, End time.Time
	Interval   time.Duration
	Type       string    // SUM, MIN, MAX, AVG, COUNT, LAST
	Now        time.Time // by the clock of the cluster
}

// samplesMax bounds an answer.
const samplesMax = 10000

// Check refuses what Prism refuses.
func (q Query) Check() error {
	switch {
	case q.Start.IsZero() || q.End.IsZero():
		return errors.New("$startTime and $endTime are required")
	case !q.End.After(q.Start):
		return errors.New("$endTime is not after $startTime")
	case q.Interval < time.Second:
		return errors.New("$samplingInterval: want 1 or more seconds")
	case q.End.Sub(q.Start)/q.Interval > samplesMax:
		return fmt.Errorf("the range has more than %d samples", samplesMax)
	case !slices.Contains([]string{"SUM", "MIN", "MAX", "AVG", "COUNT", "LAST"}, q.Type):
		return fmt.Errorf("$statType: unknown type %q", q.Type)
	}
	return nil
}

// Sample is a figure of the interval that begins at its time.
type Sample struct {
	At    time.Time
	Value float64
}

// Read returns the samples of a metric, the oldest first. An interval that has not ended yet is not among them.
func Read(s Source, e Entity, metric string, q Query) []Sample {
	var out []Sample
	end := q.End
	if end.After(q.Now) {
		end = q.Now
	}
	for at := q.Start.Truncate(q.Interval); !at.Add(q.Interval).After(end); at = at.Add(q.Interval) {
		if at.Before(q.Start) {
			continue
		}
		if v, ok := aggregate(s, e, metric, at, q); ok {
			out = append(out, Sample{at, v})
		}
	}
	return out
}

func aggregate(s Source, e Entity, metric string, at time.Time, q Query) (float64, bool) {
	var sum, last, count float64
	low, high := math.Inf(1), math.Inf(-1)
	for second := at; second.Before(at.Add(q.Interval)); second = second.Add(time.Second) {
		v, ok := s.Value(e, metric, second)
		if !ok {
			continue
		}
		sum, last, count = sum+v, v, count+1
		low, high = min(low, v), max(high, v)
	}
	if count == 0 {
		return 0, false
	}
	return map[string]float64{"SUM": sum, "MIN": low, "MAX": high, "AVG": sum / count, "COUNT": count, "LAST": last}[q.Type], true
}
