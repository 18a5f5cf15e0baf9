// Package v2 is what remains of versions 2.0 and 1 of Prism's API over the same state as v4: what clients use where newer versions cannot,
// and statistics as older exporters poll them.
//
//	/PrismGateway/services/rest/v2.0/…, /api/nutanix/v2.0/…  entities in snake_case; changes answer {task_uuid}
//	/PrismGateway/services/rest/v1/…                         entities with "stats", a dictionary of strings
package v2

import (
	"net/http"
	"strings"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/lab/prism/stats"
)

// API answers requests below the prefixes. It must not be copied.
type API struct {
	prism *state.Prism
	stats stats.Source
	mux   *http.ServeMux
}

// Prefixes of paths that the API answers.
func Prefixes() []string { return append([]string{v1}, v2...) }

const v1 = "/PrismGateway/services/rest/v1/"

var v2 = []string{"/PrismGateway/services/rest/v2.0/", "/api/nutanix/v2.0/"}

// New returns the API of a cluster.
func New(p *state.Prism, s stats.Source) *API {
	a := &API{prism: p, stats: s, mux: http.NewServeMux()}
	a.vmRoutes()
	a.storageRoutes()
	a.statRoutes()
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { Fail(w, r, http.StatusNotFound, "no such resource") })
	return a
}

// ServeHTTP implements http.Handler. A slash at the end of a path is ignored, as Prism does.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
	r.URL.RawPath = ""
	a.mux.ServeHTTP(w, r)
}

func (a *API) route(pattern string, h func(w http.ResponseWriter, r *http.Request) error) {
	method, path, _ := strings.Cut(pattern, " ")
	for _, prefix := range v2 {
		a.handle(method+" "+prefix+path, h)
	}
}

func (a *API) handle(pattern string, h func(w http.ResponseWriter, r *http.Request) error) {
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			status := http.StatusInternalServerError // v2 has it for most faults of a request
			if refusal, ok := state.IsRefusal(err); ok {
				status = map[state.Kind]int{
					state.NotFound: http.StatusNotFound, state.Invalid: http.StatusUnprocessableEntity, state.Busy: http.StatusConflict,
					state.Stale: http.StatusConflict,
				}[refusal.Kind]
			}
			Fail(w, r, status, err.Error())
		}
	})
}

// Fail writes an error in the shape of v2.
func Fail(w http.ResponseWriter, _ *http.Request, status int, message string) {
	rest.Answer(w, status, rest.Object{"message": message, "detailed_message": nil, "error_code": rest.Object{"code": 1000 + status, "help_url": ""}})
}

func decode(r *http.Request, into any) error {
	if err := rest.Decode(r, into); err != nil {
		return state.Invalidf("the body is not valid: %v", err)
	}
	return nil
}

// list answers entities, those that search_string selects.
func list(w http.ResponseWriter, r *http.Request, all []rest.Object) error {
	kept := []rest.Object{}
	search := strings.ToLower(r.URL.Query().Get("search_string"))
	for _, o := range all {
		if name, _ := o["name"].(string); strings.Contains(strings.ToLower(name), search) {
			kept = append(kept, o)
		}
	}
	rest.Answer(w, http.StatusOK, rest.Object{
		"metadata": rest.Object{"grand_total_entities": len(all), "total_entities": len(kept), "count": len(kept)}, "entities": kept,
	})
	return nil
}

// found answers one entity.
func found(w http.ResponseWriter, r *http.Request, what string, o rest.Object) error {
	if o == nil {
		return state.Missing(what, r.PathValue("id"))
	}
	rest.Answer(w, http.StatusOK, o)
	return nil
}

// accepted answers with a task.
func accepted(w http.ResponseWriter, task string, err error) error {
	if err != nil {
		return err
	}
	rest.Answer(w, http.StatusCreated, rest.Object{"task_uuid": task})
	return nil
}

func (a *API) storageRoutes() {
	a.route("GET storage_containers", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, c := range d.Containers {
				all = append(all, containerObject(d, c))
			}
		})
		for _, o := range all {
			o["stats"] = a.latest(stats.Container, o["storage_container_uuid"].(string))
		}
		return list(w, r, all)
	})
	a.route("GET storage_containers/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		a.prism.Read(func(d *state.Data) {
			if c := d.Container(r.PathValue("id")); c != nil {
				o = containerObject(d, c)
			}
		})
		return found(w, r, "storage container", o)
	})
	a.route("PUT storage_containers", a.updateContainer)
	a.route("PATCH storage_containers", a.updateContainer)
	a.route("GET tasks/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		a.prism.Read(func(d *state.Data) {
			if t := d.Task(r.PathValue("id")); t != nil {
				o = taskObject(d, t)
			}
		})
		return found(w, r, "task", o)
	})
}

// updateContainer changes the settings in the body; the entity is named in the body, and the change is done when the answer comes.
func (a *API) updateContainer(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		UUID               string  `json:"storage_container_uuid"`
		ReplicationFactor  *int    `json:"replication_factor"`
		Compression        *bool   `json:"compression_enabled"`
		CompressionDelay   *int    `json:"compression_delay_in_secs"`
		ErasureCode        *string `json:"erasure_code"`
		ErasureCodeDelay   *int    `json:"erasure_code_delay_secs"`
		FingerPrintOnWrite *string `json:"finger_print_on_write"`
		OnDiskDedup        *string `json:"on_disk_dedup"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	task, err := a.prism.UpdateContainer(body.UUID, -1, func(c *state.Container) {
		s := &c.Settings
		set(&s.ReplicationFactor, body.ReplicationFactor)
		set(&s.Compression, body.Compression)
		set(&s.CompressionDelaySecs, body.CompressionDelay)
		set(&s.ErasureCode, upper(body.ErasureCode))
		set(&s.ErasureCodeDelaySecs, body.ErasureCodeDelay)
		set(&s.CacheDedup, upper(body.FingerPrintOnWrite))
		set(&s.OnDiskDedup, upper(body.OnDiskDedup))
	})
	if err != nil {
		return err
	}
	if err := a.prism.Await(task); err != nil {
		return err
	}
	rest.Answer(w, http.StatusOK, rest.Object{"value": true})
	return nil
}

func set[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

func upper(s *string) *string {
	if s == nil {
		return nil
	}
	up := strings.ToUpper(*s)
	return &up
}

func containerObject(d *state.Data, c *state.Container) rest.Object {
	s := c.Settings
	return rest.Object{
		"id": d.Cluster.ID + "::" + c.ID, "storage_container_uuid": c.ID, "name": c.Name, "cluster_uuid": d.Cluster.ID, "max_capacity": c.MaxCapacityBytes,
		"replication_factor": s.ReplicationFactor, "compression_enabled": s.Compression, "compression_delay_in_secs": s.CompressionDelaySecs,
		"erasure_code": strings.ToLower(s.ErasureCode), "erasure_code_delay_secs": s.ErasureCodeDelaySecs,
		"finger_print_on_write": strings.ToLower(s.CacheDedup), "on_disk_dedup": s.OnDiskDedup,
	}
}

func taskObject(d *state.Data, t *state.Task) rest.Object {
	entities := []rest.Object{}
	for _, e := range t.Entities {
		entities = append(entities, rest.Object{"entity_id": e.ID, "entity_type": e.Rel[strings.LastIndexByte(e.Rel, ':')+1:], "entity_name": e.Name})
	}
	status := map[state.Status]string{state.Queued: "Queued", state.Running: "Running", state.Succeeded: "Succeeded", state.Failed: "Failed", state.Canceled: "Aborted"}[t.Status]
	o := rest.Object{
		"uuid": t.ID, "progress_status": status, "percentage_complete": t.Progress(d.Now()), "operation_type": t.Operation, "entity_list": entities,
		"create_time_usecs": t.Created.UnixMicro(),
	}
	if !t.Completed.IsZero() {
		o["complete_time_usecs"] = t.Completed.UnixMicro()
	}
	if t.Error != "" {
		o["meta_response"] = rest.Object{"error_code": 1, "error_detail": t.Error}
	}
	return o
}
