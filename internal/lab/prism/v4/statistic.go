package v4

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/lab/prism/stats"
)

// vmMetrics are those of VMs, with the figures of the categorizer.
var vmMetrics = []string{
	"controllerAvgIoLatencyMicros", "controllerAvgReadIoLatencyMicros", "controllerAvgWriteIoLatencyMicros", "controllerIoBandwidthKbps",
	"controllerNumIops", "controllerNumReadIops", "controllerNumWriteIops", "controllerReadIoBandwidthKbps", "controllerWriteIoBandwidthKbps",
	"controllerNumRandomIo", "controllerNumSeqIo", "controllerRandomIoPpm", "controllerSeqIoPpm", "controllerReadIoPpm", "controllerWriteIoPpm",
	"controllerReadSourceOplogBytes", "controllerReadSourceEstoreSsdLocalBytes", "controllerReadSourceEstoreSsdRemoteBytes",
	"controllerReadSourceEstoreHddLocalBytes", "controllerReadSourceEstoreHddRemoteBytes", "controllerWriteDestEstoreSsdBytes",
	"controllerWriteDestEstoreHddBytes", "controllerOplogDrainDestSsdBytes", "controllerOplogDrainDestHddBytes", "controllerUserBytes",
	"controllerWss120SecondReadMb", "controllerWss120SecondWriteMb", "controllerWss120SecondUnionMb", "controllerWss3600SecondReadMb",
	"controllerWss3600SecondWriteMb", "controllerWss3600SecondUnionMb", "hypervisorCpuUsagePpm", "hypervisorCpuReadyTimePpm",
	"hypervisorMemoryUsagePpm", "memoryUsagePpm", "hypervisorNumReceivedBytes", "hypervisorNumTransmittedBytes",
}

// diskMetrics and nicMetrics are those of disks and network cards of VMs: disks have no write operations per second.
var (
	diskMetrics = []string{
		"controllerAvgIoLatencyMicros", "controllerAvgReadIoLatencyMicros", "controllerAvgWriteIoLatencyMicros", "controllerAvgReadIoSizeKb",
		"controllerAvgWriteIoSizeKb", "controllerIoBandwidthKbps", "controllerReadIoBandwidthKbps", "controllerWriteIoBandwidthKbps", "controllerNumIops",
		"controllerNumReadIops", "controllerNumIo", "controllerNumReadIo", "controllerNumWriteIo", "controllerReadIoPpm", "controllerWriteIoPpm",
		"controllerSeqIoPpm", "controllerFrontendReadOps", "controllerFrontendWriteOps", "controllerRandomReadOps", "controllerRandomWriteOps",
		"controllerUserBytes", "controllerVdiskCpuTimeMicros",
	}
	nicMetrics = []string{"networkDroppedReceivedPackets", "networkDroppedTransmittedPackets"}
)

// containerMetrics are those of storage containers, whose names have other cases.
var containerMetrics = []string{
	"controllerAvgIoLatencyuSecs", "controllerAvgReadIoLatencyuSecs", "controllerAvgWriteIoLatencyuSecs", "controllerNumIops", "controllerNumReadIops",
	"controllerNumWriteIops", "controllerIoBandwidthkBps", "controllerReadIoBandwidthkBps", "controllerWriteIoBandwidthkBps", "storageCapacityBytes",
	"storageUsageBytes", "storageFreeBytes",
}

// systemMetrics are those of clusters, hosts and disks.
var systemMetrics = []string{
	"controllerAvgIoLatencyUsecs", "controllerAvgReadIoLatencyUsecs", "controllerAvgWriteIoLatencyUsecs", "controllerNumIops",
	"controllerNumReadIops", "controllerNumWriteIops", "ioBandwidthKbps", "controllerReadIoBandwidthKbps", "controllerWriteIoBandwidthKbps",
	"hypervisorCpuUsagePpm", "aggregateHypervisorMemoryUsagePpm", "overallMemoryUsageBytes", "storageUsageBytes", "storageCapacityBytes",
	"freePhysicalStorageBytes", "storageFreeBytes", "cpuCapacityHz", "memoryCapacityBytes",
}

func (a *API) statRoutes() {
	a.route("GET vmm/ahv/stats/vms/{id}", func(w http.ResponseWriter, r *http.Request) error {
		if _, err := a.copyOf(r.PathValue("id")); err != nil {
			return err
		}
		return a.rows(w, r, "Vm", stats.Entity{Kind: stats.VM, ID: r.PathValue("id")}, nil)
	})
	a.route("GET vmm/ahv/stats/vms", a.allVMs)
	for path, kind := range map[string]string{"disks": stats.VMDisk, "nics": stats.NIC} {
		a.route("GET vmm/ahv/stats/vms/{vm}/"+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
			if _, err := a.copyOf(r.PathValue("vm")); err != nil {
				return err
			}
			name := map[string]string{"disks": "VmDisk", "nics": "VmNic"}[path]
			return a.rows(w, r, name, stats.Entity{Kind: kind, ID: r.PathValue("id")}, rest.Object{"vmExtId": r.PathValue("vm")})
		})
	}
	for path, kind := range map[string]string{
		"clusters/{id}": "Cluster", "clusters/{cluster}/hosts/{id}": "Host", "disks/{id}": "Disk", "storage-containers/{id}": "StorageContainer",
	} {
		a.route("GET clustermgmt/stats/"+path, func(w http.ResponseWriter, r *http.Request) error { return a.series(w, r, kind) })
	}
}

// readQuery reads the range and type of statistics.
func readQuery(q url.Values, now time.Time) (stats.Query, error) {
	out := stats.Query{Interval: 30 * time.Second, Type: "LAST", Now: now}
	for name, to := range map[string]*time.Time{"$startTime": &out.Start, "$endTime": &out.End} {
		at, err := time.Parse(time.RFC3339, q.Get(name))
		if q.Get(name) != "" && err != nil {
			return out, state.Invalidf("%s: invalid time %q", name, q.Get(name))
		}
		*to = at
	}
	if text := q.Get("$samplingInterval"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return out, state.Invalidf("$samplingInterval: invalid value %q", text)
		}
		out.Interval = time.Duration(n) * time.Second
	}
	replace(&out.Type, q.Get("$statType"))
	if err := out.Check(); err != nil {
		return out, state.Invalidf("%v", err)
	}
	return out, nil
}

// selected returns the metrics of $select, without what comes before "/"; unknown ones are refused.
func selected(q url.Values, known []string) ([]string, error) {
	text := q.Get("$select")
	if text == "" || text == "*" || text == "stats/*" || text == "stats" {
		return known, nil
	}
	var out []string
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "stats/")
		if one == "timestamp" || one == "extId" || one == "vmExtId" {
			continue
		}
		if !slices.Contains(known, one) {
			return nil, state.Invalidf("$select: unknown statistic %q", one)
		}
		out = append(out, one)
	}
	return out, nil
}

// rows answers statistics of VMs and their devices: one object for each time.
func (a *API) rows(w http.ResponseWriter, r *http.Request, kind string, e stats.Entity, more rest.Object) error {
	o, err := a.row(r.URL.Query(), kind, e)
	if err != nil {
		return err
	}
	for k, v := range more {
		o[k] = v
	}
	return one(w, r, "vmm.v4.ahv.stats.Get"+kind+"StatsApiResponse", o, 0)
}

func (a *API) row(values url.Values, kind string, e stats.Entity) (rest.Object, error) {
	q, err := readQuery(values, a.prism.Now())
	if err != nil {
		return nil, err
	}
	known := vmMetrics
	switch e.Kind {
	case stats.VMDisk:
		known = diskMetrics
	case stats.NIC:
		known = nicMetrics
	}
	metrics, err := selected(values, known)
	if err != nil {
		return nil, err
	}
	at := map[time.Time]rest.Object{}
	var tuples []rest.Object
	for _, metric := range metrics {
		for _, s := range stats.Read(a.stats, e, metric, q) {
			tuple := at[s.At]
			if tuple == nil {
				tuple = object("vmm.v4.ahv.stats."+kind+"StatsTuple", rest.Object{"timestamp": stamp(s.At)})
				at[s.At] = tuple
				tuples = append(tuples, tuple)
			}
			tuple[metric] = int64(math.Round(s.Value))
		}
	}
	o := object("vmm.v4.ahv.stats."+kind+"Stats", rest.Object{"extId": e.ID})
	if len(tuples) > 0 {
		o["stats"] = tuples
	}
	return o, nil
}

func (a *API) allVMs(w http.ResponseWriter, r *http.Request) error {
	var vms []string
	a.prism.Read(func(d *state.Data) {
		for _, vm := range d.VMs {
			vms = append(vms, vm.ID)
		}
	})
	q := r.URL.Query()
	var all []rest.Object
	for _, id := range vms {
		o, err := a.row(q, "Vm", stats.Entity{Kind: stats.VM, ID: id})
		if err != nil {
			return err
		}
		all = append(all, o)
	}
	for _, name := range []string{"$select", "$filter"} { // of statistics, not of entities
		q.Del(name)
	}
	r.URL.RawQuery = q.Encode()
	return list(w, r, "vmm.v4.ahv.stats.ListVmStatsApiResponse", all)
}

// series answers statistics of what belongs to the cluster: one list for each metric.
func (a *API) series(w http.ResponseWriter, r *http.Request, kind string) error {
	e := stats.Entity{Kind: map[string]string{
		"Cluster": stats.Cluster, "Host": stats.Host, "Disk": stats.Disk, "StorageContainer": stats.Container,
	}[kind], ID: r.PathValue("id")}
	known := false
	a.prism.Read(func(d *state.Data) {
		known = e.ID == d.Cluster.ID && kind == "Cluster" || kind == "Host" && d.Host(e.ID) != nil || kind == "StorageContainer" && d.Container(e.ID) != nil ||
			kind == "Disk" && slices.ContainsFunc(d.Hosts, func(h *state.Host) bool { return slices.Contains(h.DiskIDs, e.ID) })
	})
	if !known {
		return state.Missing(kind, e.ID)
	}
	q, err := readQuery(r.URL.Query(), a.prism.Now())
	if err != nil {
		return err
	}
	all := systemMetrics
	if e.Kind == stats.Container {
		all = containerMetrics
	}
	metrics, err := selected(r.URL.Query(), all)
	if err != nil {
		return err
	}
	o := object("clustermgmt.v4.stats."+kind+"Stats", rest.Object{"extId": e.ID})
	source := capacities{a.stats, a.prism}
	for _, metric := range metrics {
		var values []rest.Object
		for _, s := range stats.Read(source, e, metric, q) {
			values = append(values, object("clustermgmt.v4.stats.TimeValuePair", rest.Object{"timestamp": stamp(s.At), "value": int64(math.Round(s.Value))}))
		}
		if len(values) > 0 {
			o[metric] = values
		}
	}
	return one(w, r, "clustermgmt.v4.stats."+kind+"StatsApiResponse", o, 0)
}

// capacities is a source that knows the storage of the cluster itself, at any time as it is now.
type capacities struct {
	stats.Source
	prism *state.Prism
}

// Value implements stats.Source.
func (c capacities) Value(e stats.Entity, metric string, at time.Time) (float64, bool) {
	var total, used int64
	c.prism.Read(func(d *state.Data) {
		if total, used = d.Cluster.CapacityBytes, d.UsedBytes(); e.Kind == stats.Container && d.Container(e.ID) != nil {
			total = d.Container(e.ID).MaxCapacityBytes
		}
	})
	switch metric {
	case "storageCapacityBytes":
		return float64(total), true
	case "storageUsageBytes":
		return float64(used), true
	case "storageFreeBytes", "freePhysicalStorageBytes":
		return float64(total - used), true
	}
	return c.Source.Value(e, metric, at)
}
