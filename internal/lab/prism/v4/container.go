package v4

import (
	"net/http"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

func (a *API) containerRoutes() {
	const path = "clustermgmt/config/storage-containers"
	a.route("GET "+path, func(w http.ResponseWriter, r *http.Request) error {
		var all []rest.Object
		a.prism.Read(func(d *state.Data) {
			for _, c := range d.Containers {
				all = append(all, containerObject(d, c))
			}
		})
		return list(w, r, "clustermgmt.v4.config.ListStorageContainersApiResponse", all)
	})
	a.route("GET "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var o rest.Object
		var version int
		a.prism.Read(func(d *state.Data) {
			if c := d.Container(r.PathValue("id")); c != nil {
				o, version = containerObject(d, c), c.Version
			}
		})
		if o == nil {
			return state.Missing("storage container", r.PathValue("id"))
		}
		return one(w, r, "clustermgmt.v4.config.GetStorageContainerApiResponse", o, version)
	})
	a.route("POST "+path, func(w http.ResponseWriter, r *http.Request) error {
		var body containerBody
		if err := decode(r, &body); err != nil {
			return err
		}
		var cluster string
		a.prism.Read(func(d *state.Data) { cluster = d.Cluster.ID })
		if got := r.Header.Get("X-Cluster-Id"); got != cluster {
			return state.Invalidf("X-Cluster-Id: %q is not a cluster", got)
		}
		c := state.Container{Name: body.Name}
		body.apply(&c)
		task, _, err := a.prism.CreateContainer(c)
		return accepted(w, r, task, err)
	})
	a.route("PUT "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		var body containerBody
		if err := decode(r, &body); err != nil {
			return err
		}
		version, err := match(r, r.PathValue("id"), true)
		if err != nil {
			return err
		}
		task, err := a.prism.UpdateContainer(r.PathValue("id"), version, body.apply)
		return accepted(w, r, task, err)
	})
	a.route("DELETE "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) error {
		task, err := a.prism.DeleteContainer(r.PathValue("id"))
		return accepted(w, r, task, err)
	})
}

// containerBody has the settings that can be changed; what is absent stays.
type containerBody struct {
	Name                                 string
	ReplicationFactor                    *int
	IsCompressionEnabled                 *bool
	CompressionDelaySecs                 *int
	ErasureCode                          *string
	IsInlineECEnabled                    *bool
	ErasureCodeDelaySecs                 *int
	OnDiskDedup, CacheDeduplication      *string
	LogicalExplicitReservedCapacityBytes *int64
	LogicalAdvertisedCapacityBytes       *int64
}

func (b containerBody) apply(c *state.Container) {
	s := &c.Settings
	set(&s.ReplicationFactor, b.ReplicationFactor)
	set(&s.Compression, b.IsCompressionEnabled)
	set(&s.CompressionDelaySecs, b.CompressionDelaySecs)
	set(&s.ErasureCode, b.ErasureCode)
	set(&s.InlineErasureCode, b.IsInlineECEnabled)
	set(&s.ErasureCodeDelaySecs, b.ErasureCodeDelaySecs)
	set(&s.OnDiskDedup, b.OnDiskDedup)
	set(&s.CacheDedup, b.CacheDeduplication)
	set(&s.ReservedBytes, b.LogicalExplicitReservedCapacityBytes)
	set(&s.AdvertisedBytes, b.LogicalAdvertisedCapacityBytes)
	replace(&c.Name, b.Name)
}

func set[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

func containerObject(d *state.Data, c *state.Container) rest.Object {
	s := c.Settings
	o := object("clustermgmt.v4.config.StorageContainer", rest.Object{
		"extId": c.ID, "containerExtId": c.ID, "name": c.Name, "clusterExtId": d.Cluster.ID, "clusterName": d.Cluster.Name,
		"storagePoolExtId": d.Cluster.PoolID, "maxCapacityBytes": c.MaxCapacityBytes, "replicationFactor": s.ReplicationFactor,
		"erasureCode": s.ErasureCode, "isInlineEcEnabled": s.InlineErasureCode, "isCompressionEnabled": s.Compression,
		"compressionDelaySecs": s.CompressionDelaySecs, "onDiskDedup": s.OnDiskDedup, "cacheDeduplication": s.CacheDedup,
		"logicalExplicitReservedCapacityBytes": s.ReservedBytes, "logicalAdvertisedCapacityBytes": s.AdvertisedBytes,
		"isEncrypted": false, "isSoftwareEncryptionEnabled": false, "isInternal": false, "isMarkedForRemoval": false,
	})
	if s.ErasureCode == "ON" {
		o["erasureCodeDelaySecs"] = s.ErasureCodeDelaySecs
	}
	return o
}
