package ahv

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// Container is a storage container.
type Container struct {
	ExtID            string `json:"containerExtId"`
	ID               string `json:"extId"` // in place of ExtID, in some versions
	Name             string `json:"name"`
	Cluster          string `json:"clusterExtId"`
	Internal         bool   `json:"isInternal"`
	Replication      int    `json:"replicationFactor"`
	Compression      *bool  `json:"isCompressionEnabled"`
	CompressionDelay int    `json:"compressionDelaySecs"`
	ErasureCode      string `json:"erasureCode"` // "ON", "OFF", "NONE"
	MaxBytes         int64  `json:"maxCapacityBytes"`
}

// Key is its id, wherever Prism put it.
func (c Container) Key() string {
	if c.ExtID != "" {
		return c.ExtID
	}
	return c.ID
}

// Containers lists the storage containers of the cluster.
func (c *Cluster) Containers(ctx context.Context) ([]Container, error) {
	all, err := prism.List[Container](ctx, c.Prism, "clustermgmt", "config/storage-containers", nil)
	var ours []Container
	for _, one := range all {
		if !one.Internal && (one.Cluster == "" || one.Cluster == c.ID) {
			ours = append(ours, one)
		}
	}
	return ours, err
}

// Container finds a storage container by name or id; "": the only one.
func (c *Cluster) Container(ctx context.Context, name string) (Container, error) {
	all, err := c.Containers(ctx)
	if err != nil {
		return Container{}, err
	}
	return pick(all, choice[Container]{
		kind: "storage container", name: name, id: Container.Key, called: func(c Container) string { return c.Name },
		hint: "write it as \"pool\" into the target file",
	})
}

// SetContainer changes fields of a storage container, named as Prism names them.
func (c *Cluster) SetContainer(ctx context.Context, id string, fields map[string]any) error {
	_, err := c.Prism.Change(ctx, "clustermgmt", "config/storage-containers/"+url.PathEscape(id),
		func(object json.RawMessage) (prism.Request, error) {
			body, err := prism.Merge(object, fields)
			return prism.Request{Method: http.MethodPut, Body: body}, err
		})
	return err
}

// Point is one value of a statistic.
type Point struct {
	Value float64   `json:"value"`
	At    time.Time `json:"timestamp"`
}

// latest returns the last value of a series; false if it has none.
func latest(points []Point) (Point, bool) {
	var last Point
	found := false
	for _, p := range points {
		if !found || p.At.After(last.At) {
			last, found = p, true
		}
	}
	return last, found
}

const spaceWindow = 10 * time.Minute

// Space reads the capacity and the free space of a storage container.
func (c *Cluster) Space(ctx context.Context, id string) (free, total int64, err error) {
	var stats struct {
		Capacity []Point `json:"storageCapacityBytes"`
		Free     []Point `json:"storageFreeBytes"`
		Usage    []Point `json:"storageUsageBytes"`
	}
	q := c.window(spaceWindow)
	q.Set("$statType", "LAST")
	if _, err := c.Prism.Get(ctx, "clustermgmt", "stats/storage-containers/"+url.PathEscape(id), q, &stats); err != nil {
		return 0, 0, err
	}
	capacity, ok := latest(stats.Capacity)
	if !ok {
		return 0, 0, fmt.Errorf("prism gives no capacity of the storage container in the last %v", spaceWindow)
	}
	total = int64(capacity.Value)
	if p, ok := latest(stats.Free); ok {
		return int64(p.Value), total, nil
	}
	if p, ok := latest(stats.Usage); ok {
		return max(0, total-int64(p.Value)), total, nil
	}
	return 0, total, fmt.Errorf("prism gives no free space of the storage container in the last %v", spaceWindow)
}

// samplingMin is the shortest interval for which Prism keeps statistics.
const samplingMin = 30 * time.Second

// sampling is the interval of statistics.
func (c *Cluster) sampling() time.Duration {
	if c.Sampling > 0 {
		return c.Sampling
	}
	return samplingMin
}

// window is the query of the statistics of the last time, by the clock of Prism.
func (c *Cluster) window(length time.Duration) url.Values {
	end := c.Prism.Now()
	return url.Values{
		"$startTime": {end.Add(-length).UTC().Format(time.RFC3339)}, "$endTime": {end.UTC().Format(time.RFC3339)},
		"$samplingInterval": {fmt.Sprint(int(c.sampling() / time.Second))},
	}
}
