// Package v3 is version 3 of Prism's API over the same state as v4: intents. A client sends the whole spec of an entity, with the version
// of the spec that it has read, and a task makes the entity so.
//
//	POST vms, images ──▶ 202 {metadata.uuid, status.execution_context.task_uuid}
//	PUT vms/{uuid}   ──▶ spec_version is the one that was read, else 409 ──▶ power, name, processors, memory
//	POST KIND/list   ──▶ {kind, length, offset, filter "name==…"}
package v3

import (
	"net/http"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

// API answers requests below /api/nutanix/v3. It must not be copied.
type API struct {
	prism *state.Prism
	mux   *http.ServeMux
}

// Prefix is that of the paths.
const Prefix = "/api/nutanix/v3/"

const apiVersion = "3.1"

// New returns the API of a cluster.
func New(p *state.Prism) *API {
	a := &API{prism: p, mux: http.NewServeMux()}
	a.vmRoutes()
	a.imageRoutes()
	a.listRoutes()
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { Fail(w, r, http.StatusNotFound, "no such resource") })
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

func (a *API) route(pattern string, h func(w http.ResponseWriter, r *http.Request) error) {
	method, path, _ := strings.Cut(pattern, " ")
	a.mux.HandleFunc(method+" "+Prefix+path, func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			status := http.StatusUnprocessableEntity
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

// Fail writes an error in the shape of v3.
func Fail(w http.ResponseWriter, _ *http.Request, status int, message string) {
	reason := map[int]string{
		http.StatusNotFound: "ENTITY_NOT_FOUND", http.StatusConflict: "CONFLICT", http.StatusUnauthorized: "AUTHENTICATION_REQUIRED",
		http.StatusUnprocessableEntity: "INVALID_REQUEST",
	}[status]
	if reason == "" {
		reason = "INTERNAL_ERROR"
	}
	rest.Answer(w, status, rest.Object{
		"api_version": apiVersion, "code": status, "state": "ERROR", "message_list": []rest.Object{{"message": message, "reason": reason}},
	})
}

func decode(r *http.Request, into any) error {
	if err := rest.Decode(r, into); err != nil {
		return state.Invalidf("the body is not valid: %v", err)
	}
	return nil
}

// listing is the body of list requests.
type listing struct {
	Kind           string
	Length, Offset int
	Filter         string
}

// lengthMax is the longest page of v3.
const lengthMax = 500

// list answers a page.
func list(w http.ResponseWriter, r *http.Request, kind string, all []rest.Object) error {
	l := listing{Length: 20}
	if err := decode(r, &l); err != nil {
		return err
	}
	if l.Length < 1 || l.Length > lengthMax || l.Offset < 0 {
		return state.Invalidf("length and offset: want 1 to %d, and 0 or more", lengthMax)
	}
	if field, want, ok := strings.Cut(l.Filter, "=="); ok {
		kept := []rest.Object{}
		for _, o := range all {
			if nameOf(o, strings.TrimPrefix(field, kind+"_")) == want {
				kept = append(kept, o)
			}
		}
		all = kept
	}
	total := len(all)
	page := all[min(total, l.Offset):min(total, l.Offset+l.Length)]
	rest.Answer(w, http.StatusOK, rest.Object{
		"api_version": apiVersion, "entities": append([]rest.Object{}, page...),
		"metadata": rest.Object{"kind": kind, "total_matches": total, "length": len(page), "offset": l.Offset},
	})
	return nil
}

// nameOf returns what a filter compares: a name or a uuid.
func nameOf(o rest.Object, field string) any {
	if field == "uuid" {
		metadata, _ := o["metadata"].(rest.Object)
		return metadata["uuid"]
	}
	status, _ := o["status"].(rest.Object)
	return status["name"]
}

// metadata describes an entity.
func metadata(kind, id string, version int, created, updated time.Time) rest.Object {
	return rest.Object{
		"kind": kind, "uuid": id, "spec_version": version, "creation_time": created.Format(time.RFC3339), "last_update_time": updated.Format(time.RFC3339),
		"categories": rest.Object{},
	}
}

// accepted answers with the task that makes an intent true.
func accepted(w http.ResponseWriter, o rest.Object, task string, err error) error {
	if err != nil {
		return err
	}
	status, _ := o["status"].(rest.Object)
	if status == nil {
		status = rest.Object{}
		o["status"] = status
	}
	status["state"], status["execution_context"] = "PENDING", rest.Object{"task_uuid": task}
	o["api_version"] = apiVersion
	rest.Answer(w, http.StatusAccepted, o)
	return nil
}

func refOf(kind, id, name string) rest.Object {
	return rest.Object{"kind": kind, "uuid": id, "name": name}
}

// listRoutes are clusters, hosts, subnets and tasks.
func (a *API) listRoutes() {
	a.route("POST clusters/list", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			all = []rest.Object{clusterObject(&d.Cluster, "AOS"), clusterObject(&d.Central, "PRISM_CENTRAL")}
		})
		return list(w, r, "cluster", all)
	})
	a.route("POST hosts/list", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, h := range d.Hosts {
				all = append(all, hostObject(d, h))
			}
		})
		return list(w, r, "host", all)
	})
	a.route("POST subnets/list", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, s := range d.Subnets {
				all = append(all, rest.Object{"metadata": metadata("subnet", s.ID, s.Version, d.Cluster.Created, d.Cluster.Created), "status": rest.Object{
					"state": "COMPLETE", "name": s.Name, "cluster_reference": refOf("cluster", d.Cluster.ID, d.Cluster.Name),
					"resources": rest.Object{"subnet_type": "VLAN", "vlan_id": s.VLAN, "ip_config": rest.Object{
						"subnet_ip": s.Prefix.Addr().String(), "prefix_length": s.Prefix.Bits(),
					}},
				}})
			}
		})
		return list(w, r, "subnet", all)
	})
	a.route("GET tasks/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		a.prism.Read(func(d *state.Data) {
			if t := d.Task(r.PathValue("id")); t != nil {
				o = taskObject(d, t)
			}
		})
		if o == nil {
			return state.Missing("task", r.PathValue("id"))
		}
		rest.Answer(w, http.StatusOK, o)
		return nil
	})
}

func clusterObject(c *state.Cluster, service string) rest.Object {
	return rest.Object{"metadata": metadata("cluster", c.ID, c.Version, c.Created, c.Created), "status": rest.Object{
		"state": "COMPLETE", "name": c.Name, "resources": rest.Object{
			"config":  rest.Object{"service_list": []string{service}, "build": rest.Object{"version": c.ReleaseVersion}},
			"network": rest.Object{"external_ip": c.Address},
		},
	}}
}

func hostObject(d *state.Data, h *state.Host) rest.Object {
	return rest.Object{"metadata": metadata("host", h.ID, h.Version, d.Cluster.Created, h.Booted), "status": rest.Object{
		"state": "COMPLETE", "name": h.Name, "cluster_reference": refOf("cluster", d.Cluster.ID, d.Cluster.Name), "resources": rest.Object{
			"serial_number": h.Serial, "num_cpu_cores": h.Cores, "num_cpu_sockets": 2, "memory_capacity_mib": h.MemoryBytes >> 20, "host_type": "HYPER_CONVERGED",
			"hypervisor": rest.Object{"ip": h.Address, "num_vms": d.On(h.ID), "hypervisor_full_name": "Nutanix 20230302 (simulated)"},
			"ipmi":       rest.Object{"ip": h.BMC}, "controller_vm": rest.Object{"ip": h.CVM},
		},
	}}
}

// taskObject is a task; "completion_timev" is Prism's own spelling.
func taskObject(d *state.Data, t *state.Task) rest.Object {
	var entities []rest.Object
	for _, e := range t.Entities {
		entities = append(entities, rest.Object{"kind": e.Rel[strings.LastIndexByte(e.Rel, ':')+1:], "uuid": e.ID})
	}
	status := string(t.Status)
	if t.Status == state.Canceled {
		status = "ABORTED"
	}
	o := rest.Object{
		"api_version": apiVersion, "uuid": t.ID, "status": status, "percentage_complete": t.Progress(d.Now()), "operation_type": t.Operation,
		"entity_reference_list": entities, "creation_time": t.Created.Format(time.RFC3339), "last_update_time": t.Updated.Format(time.RFC3339),
	}
	if !t.Completed.IsZero() {
		o["completion_timev"] = t.Completed.Format(time.RFC3339)
	}
	if t.Error != "" {
		o["error_detail"], o["error_code"] = t.Error, "INTERNAL_ERROR"
	}
	return o
}
