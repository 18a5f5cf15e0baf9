package v4

import (
	"net/http"
	"strings"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

// taskPrefix names the service that owns a task: "ergon" in base64.
const taskPrefix = "ZXJnb24=:"

func (a *API) taskRoutes() {
	a.route("GET prism/config/tasks", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, t := range d.Tasks {
				all = append(all, taskObject(d, t))
			}
		})
		return list(w, r, "prism.v4.config.ListTasksApiResponse", all)
	})
	a.route("GET prism/config/tasks/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		a.prism.Read(func(d *state.Data) {
			if t := d.Task(strings.TrimPrefix(r.PathValue("id"), taskPrefix)); t != nil {
				o = taskObject(d, t)
			}
		})
		if o == nil {
			return state.Missing("task", r.PathValue("id"))
		}
		return one(w, r, "prism.v4.config.GetTaskApiResponse", o, 0)
	})
	a.route("POST prism/config/tasks/{id}/$actions/cancel", func(w http.ResponseWriter, r *http.Request) error {
		if err := a.prism.CancelTask(strings.TrimPrefix(r.PathValue("id"), taskPrefix)); err != nil {
			return err
		}
		rest.Answer(w, http.StatusOK, rest.Object{
			"$objectType": "prism.v4.config.CancelTaskApiResponse",
			"data":        object("prism.v4.error.AppMessage", rest.Object{"message": "The task is being canceled", "severity": "INFO", "locale": "en_US"}),
			"metadata":    metadata(false, false, 0, r),
		})
		return nil
	})
	a.route("PUT prism/objects/{bucket}/{key}", func(w http.ResponseWriter, r *http.Request) error {
		if err := a.prism.WriteObject(r.PathValue("key"), r.Body); err != nil {
			return err
		}
		w.WriteHeader(http.StatusOK)
		return nil
	})
	a.eventRoutes()
}

func taskObject(d *state.Data, t *state.Task) rest.Object {
	o := object("prism.v4.config.Task", rest.Object{
		"extId": taskPrefix + t.ID, "operation": t.Operation, "operationDescription": t.Description, "status": string(t.Status),
		"progressPercentage": t.Progress(d.Now()), "createdTime": stamp(t.Created), "lastUpdatedTime": stamp(t.Updated),
		"isCancelable": t.Cancelable && !t.Ended(), "clusterExtIds": []string{d.Cluster.ID}, "isBackgroundTask": false, "numberOfSubtasks": 0,
		"ownedBy":                  object("prism.v4.config.OwnerReference", rest.Object{"name": "admin", "extId": "00000000-0000-0000-0000-000000000000"}),
		"numberOfEntitiesAffected": len(t.Entities),
	})
	if !t.Started.IsZero() {
		o["startedTime"] = stamp(t.Started)
	}
	if !t.Completed.IsZero() {
		o["completedTime"] = stamp(t.Completed)
	}
	var entities []rest.Object
	for _, e := range t.Entities {
		entities = append(entities, object("prism.v4.config.EntityReference", rest.Object{"extId": e.ID, "rel": e.Rel, "name": e.Name}))
	}
	if len(entities) > 0 {
		o["entitiesAffected"] = entities
	}
	if t.Status == state.Failed {
		o["errorMessages"] = []rest.Object{appMessage("prism", http.StatusInternalServerError, "TASK_FAILED", t.Error)}
		o["legacyErrorMessage"] = t.Error
	}
	return o
}

// eventRoutes are what the cluster reports by itself.
func (a *API) eventRoutes() {
	for path, alerts := range map[string]bool{"events": false, "alerts": true} {
		kind := map[bool]string{false: "Event", true: "Alert"}[alerts]
		a.route("GET monitoring/serviceability/"+path, func(w http.ResponseWriter, r *http.Request) error {
			var all []rest.Object
			a.prism.Read(func(d *state.Data) {
				for _, e := range d.Events {
					if alerts == (e.Severity != "INFO") {
						all = append(all, eventObject(d, e, kind))
					}
				}
			})
			return list(w, r, "monitoring.v4.serviceability.List"+kind+"sApiResponse", all)
		})
	}
}

func eventObject(d *state.Data, e *state.Event, kind string) rest.Object {
	source := object("monitoring.v4.common."+kind+"EntityReference", rest.Object{
		"extId": e.Source.ID, "name": e.Source.Name, "type": e.Source.Rel[strings.LastIndexByte(e.Source.Rel, ':')+1:],
	})
	o := object("monitoring.v4.serviceability."+kind, rest.Object{
		"extId": e.ID, "creationTime": stamp(e.At), "sourceEntity": source, "message": e.Message, "clusterUUID": d.Cluster.ID, "clusterName": d.Cluster.Name,
	})
	if kind == "Event" {
		o["eventType"] = e.Kind
		return o
	}
	o["alertType"], o["title"], o["severity"], o["isResolved"], o["isAcknowledged"] = e.Kind, e.Title, e.Severity, e.Resolved, false
	return o
}
