package ahv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// statsWindow is how far back statistics are read: Prism collects them every 30 s and shows them later.
const statsWindow = 4 * time.Minute

// Stats are the latest values of the statistics of one object, by the names of Prism. The time of each is the end of its interval by the clock
// of Prism, which itself writes the begin. What Prism has no value for is absent.
type Stats map[string]Point

// HostStats reads the statistics of a host.
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
	return s, c.traffic(ctx, host, s)
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

// traffic adds the traffic of a host, which only older versions of the API have. Without them it is absent.
func (c *Cluster) traffic(ctx context.Context, host string, s Stats) error {
	names := map[string]string{"hypervisor_num_received_bytes": Received, "hypervisor_num_transmitted_bytes": Transmitted}
	end := c.Prism.Now()
	a, err := c.Prism.Do(ctx, prism.Request{
		Method: http.MethodGet, Raw: "/PrismGateway/services/rest/v2.0/hosts/" + url.PathEscape(host) + "/stats/",
		Query: url.Values{
			"metrics":             {strings.Join(slices.Sorted(maps.Keys(names)), ",")},
			"start_time_in_usecs": {fmt.Sprint(end.Add(-statsWindow).UnixMicro())},
			"end_time_in_usecs":   {fmt.Sprint(end.UnixMicro())},
			"interval_in_secs":    {fmt.Sprint(int(c.sampling() / time.Second))},
			"proxyClusterUuid":    {c.ID},
		},
	})
	var status *prism.StatusError
	if errors.As(err, &status) {
		return nil
	}
	if err != nil {
		return err
	}
	var answer struct {
		Series []struct {
			Successful *bool      `json:"successful"`
			Metric     string     `json:"metric"`
			Start      int64      `json:"start_time_in_usecs"`
			Interval   int        `json:"interval_in_secs"`
			Values     []*float64 `json:"values"`
		} `json:"stats_specific_responses"`
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		return fmt.Errorf("read the statistics of a host: %w", err)
	}
	for _, one := range answer.Series {
		to := names[one.Metric]
		if to == "" || one.Interval <= 0 || one.Successful != nil && !*one.Successful {
			continue
		}
		for i, v := range one.Values {
			if v != nil && *v >= 0 {
				at := time.UnixMicro(one.Start).Add(time.Duration((i+1)*one.Interval) * time.Second)
				s[to] = Point{Value: *v / float64(one.Interval), At: at}
			}
		}
	}
	return nil
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
