package v4

import (
	"net/http"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

func (a *API) policyRoutes() {
	const path = "vmm/ahv/policies/vm-host-affinity-policies"
	a.route("GET "+path, func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, p := range d.Policies {
				all = append(all, policyObject(p))
			}
		})
		return list(w, r, "vmm.v4.ahv.policies.ListVmHostAffinityPoliciesApiResponse", all)
	})
	a.route("GET "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		var version int
		a.prism.Read(func(d *state.Data) {
			if p := d.Policy(r.PathValue("id")); p != nil {
				o, version = policyObject(p), p.Version
			}
		})
		if o == nil {
			return state.Missing("policy", r.PathValue("id"))
		}
		return one(w, r, "vmm.v4.ahv.policies.GetVmHostAffinityPolicyApiResponse", o, version)
	})
	a.route("POST "+path, func(w http.ResponseWriter, r *http.Request) error {
		var body struct {
			Name, Description            string
			VMCategories, HostCategories []reference
		}
		if err := decode(r, &body); err != nil {
			return err
		}
		task, _, err := a.prism.CreatePolicy(state.Policy{
			Name: body.Name, Description: body.Description, VMCategories: ids(body.VMCategories), HostCategories: ids(body.HostCategories),
		})
		return accepted(w, r, task, err)
	})
	a.route("DELETE "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		version, err := match(r, r.PathValue("id"), false)
		if err != nil {
			return err
		}
		task, err := a.prism.DeletePolicy(r.PathValue("id"), version)
		return accepted(w, r, task, err)
	})
	a.categoryRoutes()
}

func policyObject(p *state.Policy) rest.Object {
	return object("vmm.v4.ahv.policies.VmHostAffinityPolicy", rest.Object{
		"extId": p.ID, "name": p.Name, "description": p.Description, "createTime": stamp(p.Created), "updateTime": stamp(p.Updated),
		"vmCategories":   refs("vmm.v4.ahv.policies.CategoryReference", p.VMCategories),
		"hostCategories": refs("vmm.v4.ahv.policies.CategoryReference", p.HostCategories),
	})
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
