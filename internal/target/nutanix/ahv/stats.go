package ahv

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// statsWindow is how far back statistics are read: Prism collects them every 30 s and shows them later.
const statsWindow = 4 * time.Minute

// Stats are the latest values of the statistics of one object, by the names of Prism. The time of each is the end of its interval by the clock
// of Prism, which itself writes the begin. What Prism has no value for is absent.
type Stats map[string]Point

// HostStats reads the statistics of a host. They say nothing of its network: API v4 has none of it, and in older versions those of hosts with AHV are
// 0 or a sum since the start of the host, although they are said to be of an interval. X-Ray does not show them either.
func (c *Cluster) HostStats(ctx context.Context, host string) (Stats, error) {
	var fields map[string]json.RawMessage
	path := "stats/clusters/" + url.PathEscape(c.ID) + "/hosts/" + url.PathEscape(host)
	if err := c.stats(ctx, "clustermgmt", path, &fields); err != nil {
		return nil, err
	}
	s := Stats{}
	for name, raw := range fields {
		var points []Point
		if json.Unmarshal(raw, &points) != nil {
			continue // not a series
		}
		if p, ok := latest(points); ok {
			s[name] = Point{Value: p.Value, At: p.At.Add(c.sampling())}
		}
	}
	return s, nil
}

// VMStats reads the statistics of a VM. They come as one record for each moment, unlike those of hosts.
func (c *Cluster) VMStats(ctx context.Context, vm string) (Stats, error) {
	var answer struct{ Stats []map[string]json.RawMessage }
	if err := c.stats(ctx, "vmm", "ahv/stats/vms/"+url.PathEscape(vm), &answer); err != nil {
		return nil, err
	}
	s := Stats{}
	for _, moment := range answer.Stats {
		var at time.Time
		if json.Unmarshal(moment["timestamp"], &at) != nil {
			continue
		}
		at = at.Add(c.sampling())
		for name, raw := range moment {
			var value *float64
			if json.Unmarshal(raw, &value) == nil && value != nil && !s[name].At.After(at) {
				s[name] = Point{Value: *value, At: at}
			}
		}
	}
	s.rate("hypervisorNumReceivedBytes", Received, c.sampling())
	s.rate("hypervisorNumTransmittedBytes", Transmitted, c.sampling())
	return s, nil
}

// Rates in bytes per second, which Prism has as bytes of an interval.
const (
	Received    = "receivedBytesPerSecond"
	Transmitted = "transmittedBytesPerSecond"
)

func (s Stats) rate(from, to string, of time.Duration) {
	if p, ok := s[from]; ok {
		s[to] = Point{Value: p.Value / of.Seconds(), At: p.At}
	}
}

func (c *Cluster) stats(ctx context.Context, namespace, path string, out any) error {
	q := c.window(statsWindow)
	q.Set("$statType", "AVG")
	q.Set("$select", "*")
	_, err := c.Prism.Get(ctx, namespace, path, q, out)
	if prism.IsGone(err) {
		return nil // the object is gone, or has no statistics yet
	}
	return err
}
