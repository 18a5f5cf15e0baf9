package v4

import (
	"net/http"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

func (a *API) imageRoutes() {
	const path = "vmm/content/images"
	a.route("GET "+path, func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, i := range d.Images {
				all = append(all, imageObject(d, i))
			}
		})
		return list(w, r, "vmm.v4.content.ListImagesApiResponse", all)
	})
	a.route("GET "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		var version int
		a.prism.Read(func(d *state.Data) {
			if i := d.Image(r.PathValue("id")); i != nil {
				o, version = imageObject(d, i), i.Version
			}
		})
		if o == nil {
			return state.Missing("image", r.PathValue("id"))
		}
		return one(w, r, "vmm.v4.content.GetImageApiResponse", o, version)
	})
	a.route("POST "+path, a.createImage)
	a.route("PUT "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var body imageBody
		if err := decode(r, &body); err != nil {
			return err
		}
		version, err := match(r, r.PathValue("id"), true)
		if err != nil {
			return err
		}
		task, err := a.prism.UpdateImage(r.PathValue("id"), version, func(i *state.Image) {
			i.Name, i.Description, i.Categories = body.Name, body.Description, body.CategoryExtIDs
		})
		return accepted(w, r, task, err)
	})
	a.route("DELETE "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		version, err := match(r, r.PathValue("id"), false)
		if err != nil {
			return err
		}
		task, err := a.prism.DeleteImage(r.PathValue("id"), version)
		return accepted(w, r, task, err)
	})
	a.route("GET "+path+"/{id}/file", func(w http.ResponseWriter, r *http.Request) error {
		var found bool
		a.prism.Read(func(d *state.Data) {
			i := d.Image(r.PathValue("id"))
			found = i != nil && i.Active
		})
		if !found {
			return state.Missing("image", r.PathValue("id"))
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeFile(w, r, a.prism.Disks().Path(r.PathValue("id")))
		return nil
	})
}

type imageBody struct {
	Name, Description, Type string
	CategoryExtIDs          []string
	Source                  struct {
		ObjectType string `json:"$objectType"`
		URL        string
		ExtID      string
		Key        string
	}
}

// createImage makes an image of a disk of a VM, or of an object that was uploaded before. A URL cannot be reached from here: its task fails.
func (a *API) createImage(w http.ResponseWriter, r *http.Request) error {
	var body imageBody
	if err := decode(r, &body); err != nil {
		return err
	}
	i := state.Image{Name: body.Name, Description: body.Description, Kind: body.Type, Categories: body.CategoryExtIDs}
	var task string
	var err error
	switch {
	case body.Source.URL != "":
		task, err = a.prism.FailImage(i, "could not download the image: the cluster has no route to "+body.Source.URL)
	case body.Source.ExtID != "":
		task, _, err = a.prism.ImageOfDisk(i, body.Source.ExtID)
	case body.Source.Key != "":
		task, _, err = a.prism.ImageOfObject(i, body.Source.Key)
	default: // contents follow by an upload
		task, _, err = a.prism.CreateImage(i)
	}
	return accepted(w, r, task, err)
}

func imageObject(d *state.Data, i *state.Image) rest.Object {
	o := object("vmm.v4.content.Image", rest.Object{
		"extId": i.ID, "name": i.Name, "description": i.Description, "type": i.Kind, "sizeBytes": i.SizeBytes, "createTime": stamp(i.Created),
		"lastUpdateTime": stamp(i.Updated), "clusterLocationExtIds": []string{d.Cluster.ID},
	})
	if len(i.Categories) > 0 {
		o["categoryExtIds"] = i.Categories
	}
	if i.SHA256 != "" {
		o["checksum"] = object("vmm.v4.content.ImageSha256Checksum", rest.Object{"hexDigest": i.SHA256})
	}
	return o
}
