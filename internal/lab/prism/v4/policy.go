package v4

import (
	"net/http"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

// policyKind is one of the two kinds of affinity policies: where VMs run, and which of them run apart.
type policyKind struct {
	path, name string // of the resource, and of its type
	apart      bool
}

func (a *API) policyRoutes() {
	a.policiesOf(policyKind{"vmm/ahv/policies/vm-host-affinity-policies", "VmHostAffinityPolicy", false})
	a.policiesOf(policyKind{"vmm/ahv/policies/vm-anti-affinity-policies", "VmAntiAffinityPolicy", true})
	a.categoryRoutes()
}

// find finds a policy of the kind.
func (k policyKind) find(d *state.Data, id string) *state.Policy {
	if p := d.Policy(id); p != nil && p.AntiAffinity == k.apart {
		return p
	}
	return nil
}

func (a *API) policiesOf(k policyKind) {
	plural := k.name[:len(k.name)-1] + "ies"
	a.route("GET "+k.path, func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, p := range d.Policies {
				if p.AntiAffinity == k.apart {
					all = append(all, k.object(d, p))
				}
			}
		})
		return list(w, r, "vmm.v4.ahv.policies.List"+plural+"ApiResponse", all)
	})
	a.route("GET "+k.path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		var version int
		a.prism.Read(func(d *state.Data) {
			if p := k.find(d, r.PathValue("id")); p != nil {
				o, version = k.object(d, p), p.Version
			}
		})
		if o == nil {
			return state.Missing("policy", r.PathValue("id"))
		}
		return one(w, r, "vmm.v4.ahv.policies.Get"+k.name+"ApiResponse", o, version)
	})
	a.route("GET "+k.path+"/{id}/vm-compliance-states", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		found := false
		a.prism.Read(func(d *state.Data) {
			if p := k.find(d, r.PathValue("id")); p != nil {
				found, all = true, k.compliance(d, p)
			}
		})
		if !found {
			return state.Missing("policy", r.PathValue("id"))
		}
		return list(w, r, "vmm.v4.ahv.policies.List"+k.name+"VmComplianceStatesApiResponse", all)
	})
	a.route("POST "+k.path, func(w http.ResponseWriter, r *http.Request) error {
		var body policyBody
		if err := decode(r, &body); err != nil {
			return err
		}
		task, _, err := a.prism.CreatePolicy(state.Policy{
			Name: body.Name, Description: body.Description, VMCategories: append(ids(body.VMCategories), ids(body.Categories)...),
			HostCategories: ids(body.HostCategories), AntiAffinity: k.apart,
		})
		return accepted(w, r, task, err)
	})
	a.route("DELETE "+k.path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		version, err := match(r, r.PathValue("id"), false)
		if err != nil {
			return err
		}
		task, err := a.prism.DeletePolicy(r.PathValue("id"), version)
		return accepted(w, r, task, err)
	})
}

type policyBody struct {
	Name, Description                        string
	VMCategories, HostCategories, Categories []reference
}

const policyPackage = "vmm.v4.ahv.policies."

func (k policyKind) object(d *state.Data, p *state.Policy) rest.Object {
	against, with := d.NonCompliant(p)
	o := rest.Object{
		"extId": p.ID, "name": p.Name, "description": p.Description, "createTime": stamp(p.Created), "updateTime": stamp(p.Updated),
		"numCompliantVms": len(with), "numNonCompliantVms": len(against),
	}
	if k.apart {
		o["categories"] = refs(policyPackage+"CategoryReference", p.VMCategories)
	} else {
		o["vmCategories"] = refs(policyPackage+"CategoryReference", p.VMCategories)
		o["hostCategories"] = refs(policyPackage+"CategoryReference", p.HostCategories)
	}
	return object(policyPackage+k.name, o)
}

// compliance has one state for each running VM of a policy.
func (k policyKind) compliance(d *state.Data, p *state.Policy) (all []rest.Object) {
	against, with := d.NonCompliant(p)
	for status, vms := range map[string][]*state.VM{"NonCompliant" + k.name: against, "Compliant" + k.name: with} {
		for _, vm := range vms {
			all = append(all, object(policyPackage+k.name+"VmComplianceState", rest.Object{
				"extId": vm.ID, "cluster": ref(policyPackage+"ClusterReference", d.Cluster.ID), "host": ref(policyPackage+"HostReference", vm.HostID),
				"associatedCategories": refs(policyPackage+"CategoryReference", vm.Categories), "complianceStatus": object(policyPackage+status, rest.Object{}),
			}))
		}
	}
	return all
}

func (a *API) categoryRoutes() {
	const path = "prism/config/categories"
	a.route("GET "+path, func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, c := range d.Categories {
				all = append(all, categoryObject(c))
			}
		})
		return list(w, r, "prism.v4.config.ListCategoriesApiResponse", all)
	})
	a.route("GET "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		var version int
		a.prism.Read(func(d *state.Data) {
			if c := d.Category(r.PathValue("id")); c != nil {
				o, version = categoryObject(c), c.Version
			}
		})
		if o == nil {
			return state.Missing("category", r.PathValue("id"))
		}
		return one(w, r, "prism.v4.config.GetCategoryApiResponse", o, version)
	})
	a.route("POST "+path, func(w http.ResponseWriter, r *http.Request) error {
		var body struct{ Key, Value, Description string }
		if err := decode(r, &body); err != nil {
			return err
		}
		c, err := a.prism.CreateCategory(state.Category{Key: body.Key, Value: body.Value, Description: body.Description})
		if err != nil {
			return err
		}
		w.Header().Set("ETag", etag(c.ID, c.Version))
		rest.Answer(w, http.StatusCreated, rest.Object{
			"$objectType": "prism.v4.config.CreateCategoryApiResponse", "data": categoryObject(&c), "metadata": metadata(false, false, 0, r),
		})
		return nil
	})
	a.route("PUT "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var body struct{ Description string }
		if err := decode(r, &body); err != nil {
			return err
		}
		version, err := match(r, r.PathValue("id"), true)
		if err != nil {
			return err
		}
		if err := a.prism.UpdateCategory(r.PathValue("id"), body.Description, version); err != nil {
			return err
		}
		rest.Answer(w, http.StatusOK, rest.Object{"$objectType": "prism.v4.config.UpdateCategoryApiResponse", "metadata": metadata(false, false, 0, r)})
		return nil
	})
	a.route("DELETE "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		if err := a.prism.DeleteCategory(r.PathValue("id")); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

func categoryObject(c *state.Category) rest.Object {
	return object("prism.v4.config.Category", rest.Object{
		"extId": c.ID, "key": c.Key, "value": c.Value, "description": c.Description, "type": "USER",
	})
}
