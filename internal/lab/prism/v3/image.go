package v3

import (
	"net/http"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

func (a *API) imageRoutes() {
	a.route("POST images", func(w http.ResponseWriter, r *http.Request) error {
		var body struct {
			Spec struct {
				Name, Description string
				Resources         struct {
					ImageType string `json:"image_type"`
					SourceURI string `json:"source_uri"`
				}
			}
		}
		if err := decode(r, &body); err != nil {
			return err
		}
		i := state.Image{Name: body.Spec.Name, Description: body.Spec.Description, Kind: body.Spec.Resources.ImageType}
		if uri := body.Spec.Resources.SourceURI; uri != "" {
			task, err := a.prism.FailImage(i, "could not download the image: the cluster has no route to "+uri)
			return accepted(w, rest.Object{"metadata": rest.Object{"kind": "image", "uuid": state.NewID()}}, task, err)
		}
		task, id, err := a.prism.CreateImage(i)
		return accepted(w, rest.Object{"metadata": rest.Object{"kind": "image", "uuid": id, "spec_version": 0}}, task, err)
	})
	a.route("PUT images/{id}/file", func(w http.ResponseWriter, r *http.Request) error {
		task, err := a.prism.UploadImage(r.PathValue("id"), r.Body)
		if err != nil {
			return err
		}
		rest.Answer(w, http.StatusOK, rest.Object{"task_uuid": task})
		return nil
	})
	a.route("POST images/list", func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, i := range d.Images {
				all = append(all, imageObject(i))
			}
		})
		return list(w, r, "image", all)
	})
	a.route("GET images/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		a.prism.Read(func(d *state.Data) {
			if i := d.Image(r.PathValue("id")); i != nil {
				o = imageObject(i)
			}
		})
		if o == nil {
			return state.Missing("image", r.PathValue("id"))
		}
		rest.Answer(w, http.StatusOK, o)
		return nil
	})
	a.route("DELETE images/{id}", func(w http.ResponseWriter, r *http.Request) error {
		task, err := a.prism.DeleteImage(r.PathValue("id"), -1)
		return accepted(w, rest.Object{"metadata": rest.Object{"kind": "image", "uuid": r.PathValue("id")}}, task, err)
	})
}

func imageObject(i *state.Image) rest.Object {
	condition := "INACTIVE"
	if i.Active {
		condition = "COMPLETE"
	}
	resources := rest.Object{"image_type": i.Kind, "size_bytes": i.SizeBytes, "image_state": condition}
	if i.SHA256 != "" {
		resources["checksum"] = rest.Object{"checksum_algorithm": "SHA_256", "checksum_value": i.SHA256}
	}
	return rest.Object{
		"api_version": apiVersion, "metadata": metadata("image", i.ID, i.Version, i.Created, i.Updated),
		"spec":   rest.Object{"name": i.Name, "description": i.Description, "resources": rest.Object{"image_type": i.Kind}},
		"status": rest.Object{"state": "COMPLETE", "name": i.Name, "description": i.Description, "resources": resources},
	}
}
