package nutanix

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/collect"
)

// central is Prism Central, by API v4.
type central struct {
	*prism
	versions map[string]string // by namespace: "v4.3"
}

func (c *central) path(namespace, rest string) string {
	return "/api/" + namespace + "/" + c.versions[namespace] + rest
}

// Collect implements collect.Collector. It lists clusters, containers, hosts and VMs with their disks, and reads the statistics of each of them.
func (c *central) Collect(ctx context.Context) (collect.Reading, error) {
	var reading collect.Reading
	entities, clock, err := c.entities(ctx)
	if err != nil {
		return reading, err
	}
	if clock.IsZero() {
		clock = time.Now()
	}
	reading.Clock = clock
	query := url.Values{
		"$startTime": {clock.Add(-c.o.Source.Interval - 2*sampling).UTC().Format(time.RFC3339)}, "$endTime": {clock.UTC().Format(time.RFC3339)},
		"$samplingInterval": {strconv.Itoa(int(sampling.Seconds()))}, "$statType": {"AVG"},
		"$select": {"*"}, // Prism Central refuses requests without it, and 7.3 refuses names of statistics of VMs
	}
	failed := 0
	for _, e := range entities {
		samples, err := c.statistics(ctx, e, query)
		if err != nil {
			if failed++; failed == 1 {
				reading.Missing = append(reading.Missing, fmt.Sprintf("statistics of some entities: %s %s: %v", e.kind, e.name, err))
			}
			if failed == len(entities) || ctx.Err() != nil {
				return collect.Reading{}, err
			}
		}
		reading.Samples = append(reading.Samples, samples...)
	}
	return reading, nil
}

// named is an entity of a list.
type named struct {
	ExtID          string `json:"extId"`
	ContainerExtID string `json:"containerExtId"`
	Name           string `json:"name"`
	HostName       string `json:"hostName"`
	Cluster        struct {
		ExtID string `json:"extId"`
		UUID  string `json:"uuid"`
	}
	Host struct {
		ExtID string `json:"extId"`
	}
	Config struct {
		Functions []string `json:"clusterFunction"`
	}
	Disks []struct {
		ExtID   string `json:"extId"`
		Address struct {
			Bus   string `json:"busType"`
			Index int    `json:"index"`
		} `json:"diskAddress"`
	} `json:"disks"`
	ClusterExtID string `json:"clusterExtId"`
	ClusterName  string `json:"clusterName"`
	PowerState   string `json:"powerState"`
}

// list reads all pages of a list, and returns the clock of Prism.
func (c *central) list(ctx context.Context, path string) (all []named, clock time.Time, err error) {
	for page := range pagesMax {
		var answer struct {
			Data     []named
			Metadata struct {
				Total int `json:"totalAvailableResults"`
			}
		}
		query := url.Values{"$page": {strconv.Itoa(page)}, "$limit": {strconv.Itoa(pageMax)}}
		if clock, err = c.get(ctx, collect.Call{Path: path, Query: query}, &answer); err != nil {
			return nil, clock, err
		}
		all = append(all, answer.Data...)
		if len(answer.Data) == 0 || len(all) >= min(answer.Metadata.Total, pageMax*pagesMax) {
			break
		}
	}
	return all, clock, nil
}

// clusters lists those that Prism Central manages, of which it is not one.
func (c *central) clusters(ctx context.Context) (out []entity, err error) {
	all, _, err := c.list(ctx, c.path("clustermgmt", "/config/clusters"))
	for _, one := range all {
		if !slices.Contains(one.Config.Functions, "PRISM_CENTRAL") && len(out) < entitiesMax {
			out = append(out, entity{kind: "cluster", name: one.Name, cluster: one.Name, path: c.path("clustermgmt", "/stats/clusters/"+url.PathEscape(one.ExtID))})
		}
	}
	return out, err
}

// entities lists what is read: clusters, containers, hosts, and running VMs of the run with their disks.
func (c *central) entities(ctx context.Context) ([]entity, time.Time, error) {
	out, err := c.clusters(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	containers, clock, err := c.list(ctx, c.path("clustermgmt", "/config/storage-containers"))
	if err != nil {
		return nil, clock, err
	}
	for i, one := range containers {
		id := cmp.Or(one.ContainerExtID, one.ExtID)
		if c.o.Reads(one.Name) && i < entitiesMax {
			out = append(out, entity{kind: "container", name: one.Name, cluster: one.ClusterName, path: c.path("clustermgmt", "/stats/storage-containers/"+url.PathEscape(id))})
		}
	}
	hosts, _, err := c.list(ctx, c.path("clustermgmt", "/config/hosts"))
	if err != nil {
		return nil, clock, err
	}
	hostNames := map[string]string{}
	for i, one := range hosts {
		hostNames[one.ExtID] = one.HostName
		if i < entitiesMax {
			path := "/stats/clusters/" + url.PathEscape(cmp.Or(one.Cluster.UUID, one.Cluster.ExtID)) + "/hosts/" + url.PathEscape(one.ExtID)
			out = append(out, entity{kind: "host", name: one.HostName, path: c.path("clustermgmt", path)})
		}
	}
	vms, _, err := c.list(ctx, c.path("vmm", "/ahv/config/vms"))
	if err != nil {
		return nil, clock, err
	}
	count, disks := 0, 0
	for _, one := range vms {
		if one.PowerState != "ON" || !c.o.ReadsVM(one.Name) || count >= entitiesMax {
			continue
		}
		count++
		vm := entity{kind: "vm", name: one.Name, vm: one.Name, node: hostNames[one.Host.ExtID], path: c.path("vmm", "/ahv/stats/vms/"+url.PathEscape(one.ExtID))}
		out = append(out, vm)
		for _, d := range one.Disks {
			if d.ExtID == "" || d.Address.Bus == "" || disks >= disksMax {
				continue
			}
			disks++
			disk := vm
			disk.kind, disk.name, disk.path = "disk", fmt.Sprintf("%s.%d", strings.ToLower(d.Address.Bus), d.Address.Index), vm.path+"/disks/"+url.PathEscape(d.ExtID)
			out = append(out, disk)
		}
	}
	return out, clock, nil
}

// statistics reads those of one entity. VMs and their disks have a list of records, one for each time; other entities have a list of times for each statistic.
func (c *central) statistics(ctx context.Context, e entity, query url.Values) ([]collect.Sample, error) {
	var answer struct{ Data map[string]json.RawMessage }
	if _, err := c.get(ctx, collect.Call{Path: e.path, Query: query}, &answer); err != nil {
		return nil, err
	}
	byTime := map[time.Time]map[string]float64{}
	put := func(at time.Time, name string, value float64) {
		if byTime[at] == nil {
			byTime[at] = map[string]float64{}
		}
		byTime[at][plain(name)] = value
	}
	for name, raw := range answer.Data {
		if e.records() && name == "stats" {
			var records []map[string]any
			if json.Unmarshal(raw, &records) != nil {
				return nil, fmt.Errorf("source %q: statistics of VM %q are not those of Prism", c.o.Source.Name, e.vm)
			}
			for _, record := range records {
				text, _ := record["timestamp"].(string)
				at, err := time.Parse(time.RFC3339, text)
				for key, value := range record {
					if number, ok := value.(float64); ok && err == nil {
						put(at, key, number)
					}
				}
			}
			continue
		}
		var points []struct {
			Value     float64
			Timestamp time.Time
		}
		if json.Unmarshal(raw, &points) == nil {
			for _, p := range points {
				put(p.Timestamp, name, p.Value)
			}
		}
	}
	var out []collect.Sample
	for at, values := range byTime {
		derive(values)
		for name, value := range values {
			if s, ok := sampleOf(e, name, value, values, at.Add(sampling)); ok { // Prism writes the begin of an interval
				out = append(out, s)
			}
		}
	}
	return out, nil
}
