package v4

import (
	"net/http"
	"time"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

func (a *API) pointRoutes() {
	const path = "dataprotection/config/recovery-points"
	a.route("GET "+path, func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, p := range d.Points {
				all = append(all, pointObject(p))
			}
		})
		return list(w, r, "dataprotection.v4.config.ListRecoveryPointsApiResponse", all)
	})
	a.route("GET "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		var version int
		a.prism.Read(func(d *state.Data) {
			if p := d.Point(r.PathValue("id")); p != nil {
				o, version = pointObject(p), p.Version
			}
		})
		if o == nil {
			return state.Missing("recovery point", r.PathValue("id"))
		}
		return one(w, r, "dataprotection.v4.config.GetRecoveryPointApiResponse", o, version)
	})
	a.route("POST "+path, a.createPoint)
	a.route("DELETE "+path+"/{id}", a.deletePoint)
	a.route("POST "+path+"/{id}/$actions/restore", a.restorePoint)
	a.vmPointRoutes()
}

// vmPointRoutes are recovery points of one VM each, in the namespace vmm.
func (a *API) vmPointRoutes() {
	const path = "vmm/ahv/config/vm-recovery-points"
	a.route("GET "+path, func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, p := range d.Points {
				for i := range p.VMs {
					all = append(all, vmPointObject(d, p, &p.VMs[i]))
				}
			}
		})
		return list(w, r, "vmm.v4.ahv.config.ListVmRecoveryPointsApiResponse", all)
	})
	a.route("GET "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, p := range d.Points {
				for i := range p.VMs {
					if p.VMs[i].ID == r.PathValue("id") {
						o = vmPointObject(d, p, &p.VMs[i])
					}
				}
			}
		})
		if o == nil {
			return state.Missing("VM recovery point", r.PathValue("id"))
		}
		return one(w, r, "vmm.v4.ahv.config.GetVmRecoveryPointApiResponse", o, 0)
	})
	a.route("POST "+path, func(w http.ResponseWriter, r *http.Request) error {
		var body struct {
			Name, RecoveryPointType, VMExtID string
			ExpirationTime                   time.Time
		}
		if err := decode(r, &body); err != nil {
			return err
		}
		task, _, err := a.prism.CreatePoint(body.Name, kindOf(body.RecoveryPointType), body.ExpirationTime, []string{body.VMExtID})
		return accepted(w, r, task, err)
	})
	a.route("DELETE "+path+"/{id}", a.deletePoint)
	a.route("POST "+path+"/{id}/$actions/restore", func(w http.ResponseWriter, r *http.Request) error {
		var body struct{ VMConfigOverrideSpec struct{ Name string } }
		if err := decode(r, &body); err != nil {
			return err
		}
		task, err := a.prism.RestorePoint([]string{r.PathValue("id")}, body.VMConfigOverrideSpec.Name)
		return accepted(w, r, task, err)
	})
}

func kindOf(text string) string {
	if text == "" {
		return "CRASH_CONSISTENT"
	}
	return text
}

func (a *API) createPoint(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name, RecoveryPointType string
		ExpirationTime          time.Time
		VMRecoveryPoints        []struct{ VMExtID string }
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	var vms []string
	for _, v := range body.VMRecoveryPoints {
		vms = append(vms, v.VMExtID)
	}
	task, _, err := a.prism.CreatePoint(body.Name, kindOf(body.RecoveryPointType), body.ExpirationTime, vms)
	return accepted(w, r, task, err)
}

func (a *API) deletePoint(w http.ResponseWriter, r *http.Request) error {
	task, err := a.prism.DeletePoint(r.PathValue("id"))
	return accepted(w, r, task, err)
}

func (a *API) restorePoint(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		ClusterExtID                    string
		VMRecoveryPointRestoreOverrides []struct {
			VMRecoveryPointExtID string
			VMOverrideSpec       struct{ Name string }
		}
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	var from []string
	name := ""
	for _, o := range body.VMRecoveryPointRestoreOverrides {
		from, name = append(from, o.VMRecoveryPointExtID), o.VMOverrideSpec.Name
	}
	found := false
	a.prism.Read(func(d *state.Data) {
		p := d.Point(r.PathValue("id"))
		if found = p != nil; found && len(from) == 0 {
			for _, v := range p.VMs {
				from = append(from, v.ID)
			}
		}
	})
	if !found {
		return state.Missing("recovery point", r.PathValue("id"))
	}
	task, err := a.prism.RestorePoint(from, name)
	return accepted(w, r, task, err)
}

func pointObject(p *state.RecoveryPoint) rest.Object {
	var vms []rest.Object
	for _, v := range p.VMs {
		vms = append(vms, object("dataprotection.v4.config.VmRecoveryPoint", rest.Object{
			"extId": v.ID, "vmExtId": v.VMID, "name": p.Name, "creationTime": stamp(p.Created), "recoveryPointType": p.Kind, "status": "COMPLETE",
		}))
	}
	o := object("dataprotection.v4.config.RecoveryPoint", rest.Object{
		"extId": p.ID, "name": p.Name, "creationTime": stamp(p.Created), "recoveryPointType": p.Kind, "status": "COMPLETE", "vmRecoveryPoints": vms,
	})
	if !p.Expires.IsZero() {
		o["expirationTime"] = stamp(p.Expires)
	}
	return o
}

func vmPointObject(d *state.Data, p *state.RecoveryPoint, v *state.PointVM) rest.Object {
	return object("vmm.v4.ahv.config.VmRecoveryPoint", rest.Object{
		"extId": v.ID, "vmExtId": v.VMID, "name": p.Name, "creationTime": stamp(p.Created), "recoveryPointType": p.Kind, "status": "COMPLETE",
		"vm": vmObject(d, &v.VM),
	})
}
