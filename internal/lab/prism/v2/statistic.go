package v2

import (
	"fmt"
	"maps"
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

// metrics are what the dictionaries of v1 hold, under the names of v1 and v2.
var metrics = []string{
	"controller_num_iops", "controller_num_read_iops", "controller_num_write_iops", "controller_io_bandwidth_kBps",
	"controller_read_io_bandwidth_kBps", "controller_write_io_bandwidth_kBps", "controller_avg_io_latency_usecs",
	"controller_avg_read_io_latency_usecs", "controller_avg_write_io_latency_usecs", "hypervisor_cpu_usage_ppm", "hypervisor.cpu_ready_time_ppm",
	"hypervisor_memory_usage_ppm", "hypervisor_num_received_bytes", "hypervisor_num_transmitted_bytes", "num_iops", "avg_io_latency_usecs",
}

// v4Name is the name of a metric in v4, which sources know: controller_num_iops is controllerNumIops.
func v4Name(name string) string {
	var b strings.Builder
	for i, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '.' }) {
		if part == "kBps" {
			part = "kbps"
		}
		if i > 0 {
			part = strings.ToUpper(part[:1]) + part[1:]
		}
		b.WriteString(part)
	}
	return b.String()
}

func (a *API) statRoutes() {
	for path, kind := range map[string]string{
		"storage_containers": stats.Container, "containers": stats.Container, "hosts": stats.Host, "vms": stats.VM, "clusters": stats.Cluster,
		"cluster": stats.Cluster, "virtual_disks": stats.VMDisk,
	} {
		read := func(form statForm) func(http.ResponseWriter, *http.Request) error {
			return func(w http.ResponseWriter, r *http.Request) error { return a.read(w, r, kind, form) }
		}
		id := "/{id}"
		if path == "cluster" {
			id = ""
		}
		a.route("GET "+path+id+"/stats", read(snakeForm))
		a.handle("GET "+v1+path+id+"/stats", read(camelForm))
	}
	for path, kind := range map[string]string{"hosts": stats.Host, "vms": stats.VM, "containers": stats.Container, "clusters": stats.Cluster} {
		a.handle("GET "+v1+path, func(w http.ResponseWriter, r *http.Request) error { return a.entities(w, kind) })
	}
}

// statForm is the spelling of one version.
type statForm struct{ start, end, interval, answer, successful string }

var (
	snakeForm = statForm{"start_time_in_usecs", "end_time_in_usecs", "interval_in_secs", "stats_specific_responses", "successful"}
	camelForm = statForm{"startTimeInUsecs", "endTimeInUsecs", "intervalInSecs", "statsSpecificResponses", "successful"}
)

// read answers series of metrics. An unknown metric is one unsuccessful response among the others.
func (a *API) read(w http.ResponseWriter, r *http.Request, kind string, form statForm) error {
	e := stats.Entity{Kind: kind, ID: r.PathValue("id")}
	a.prism.Read(func(d *state.Data) {
		if e.ID == "" {
			e.ID = d.Cluster.ID
		}
	})
	if !slices.Contains(a.ids(kind), e.ID) {
		return state.Missing(kind, e.ID)
	}
	q, err := query(r.URL.Query(), form, a.prism.Now())
	if err != nil {
		return err
	}
	var responses []rest.Object
	for metric := range strings.SplitSeq(r.URL.Query().Get("metrics"), ",") {
		one := rest.Object{form.successful: slices.Contains(metrics, metric), "metric": metric, form.start: q.Start.UnixMicro(), form.interval: int(q.Interval / time.Second)}
		if one[form.successful] == true {
			values := []int64{}
			for _, s := range stats.Read(a.stats, e, v4Name(metric), q) {
				values = append(values, int64(math.Round(s.Value)))
			}
			one["values"] = values
		} else {
			one["message"] = "unknown metric"
		}
		responses = append(responses, one)
	}
	rest.Answer(w, http.StatusOK, rest.Object{form.answer: responses})
	return nil
}

// query reads a range; without one it is the last interval.
func query(v url.Values, form statForm, now time.Time) (stats.Query, error) {
	q := stats.Query{Interval: 30 * time.Second, Type: "AVG", End: now, Now: now}
	numbers := map[string]int64{}
	for _, name := range []string{form.start, form.end, form.interval} {
		if text := v.Get(name); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return q, state.Invalidf("%s: invalid value %q", name, text)
			}
			numbers[name] = n
		}
	}
	if n, ok := numbers[form.interval]; ok {
		q.Interval = time.Duration(n) * time.Second
	}
	if n, ok := numbers[form.end]; ok {
		q.End = time.UnixMicro(n)
	}
	q.Start = q.End.Add(-2 * q.Interval)
	if n, ok := numbers[form.start]; ok {
		q.Start = time.UnixMicro(n)
	}
	if err := q.Check(); err != nil {
		return q, state.Invalidf("%v", err)
	}
	return q, nil
}

// ids lists the entities of a kind.
func (a *API) ids(kind string) (out []string) {
	a.prism.Read(func(d *state.Data) {
		switch kind {
		case stats.Container:
			for _, c := range d.Containers {
				out = append(out, c.ID)
			}
		case stats.Host:
			for _, h := range d.Hosts {
				out = append(out, h.ID)
			}
		case stats.Cluster:
			out = append(out, d.Cluster.ID)
		case stats.VM, stats.VMDisk:
			for _, vm := range d.VMs {
				out = append(out, vm.ID)
				for _, disk := range vm.Disks {
					out = append(out, disk.ID)
				}
			}
		}
	})
	return out
}

// entities answers those of v1 with what exporters poll: the latest figures as strings.
func (a *API) entities(w http.ResponseWriter, kind string) error {
	names, more := map[string]string{}, map[string]rest.Object{}
	a.prism.Read(func(d *state.Data) {
		for _, c := range d.Containers {
			names[c.ID] = c.Name
		}
		for _, h := range d.Hosts {
			names[h.ID] = h.Name
		}
		for _, vm := range d.VMs {
			names[vm.ID] = vm.Name
			more[vm.ID] = rest.Object{"vmName": vm.Name, "powerState": strings.ToLower(string(vm.Power))}
			if h := d.Host(vm.HostID); h != nil {
				more[vm.ID]["hostName"] = h.Name
			}
		}
		names[d.Cluster.ID] = d.Cluster.Name
	})
	entities := []rest.Object{}
	for _, id := range a.ids(kind) {
		if names[id] == "" {
			continue // a disk
		}
		entity := rest.Object{"uuid": id, "name": names[id], "stats": a.latest(kind, id)}
		maps.Copy(entity, more[id])
		entities = append(entities, entity)
	}
	rest.Answer(w, http.StatusOK, rest.Object{"metadata": rest.Object{"totalEntities": len(entities)}, "entities": entities})
	return nil
}

// latest are the latest figures of an entity, as strings.
func (a *API) latest(kind, id string) rest.Object {
	figures := rest.Object{}
	now := a.prism.Now().Truncate(20 * time.Second) // Prism renews them about so often
	for _, metric := range metrics {
		if v, ok := a.stats.Value(stats.Entity{Kind: kind, ID: id}, v4Name(metric), now); ok {
			figures[metric] = fmt.Sprint(int64(math.Round(v)))
		}
	}
	return figures
}
