package vsphere

import (
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/vsphere/hardware"
)

// settings are what a target file says to this provider, with defaults filled in. Empty names of objects: the only one
// there is.
type settings struct {
	datacenter, cluster, folder, pool, datastore, network string
	clones, disks                                         string
	addresses                                             address.Range
	guestUser, guestKey                                   string
}

const (
	clonesFull   = "full"
	clonesLinked = "linked"
)

// choices are the options of the target file and their values, the default first.
var choices = map[string][]string{
	"template_clones": {clonesFull, clonesLinked},
	"disks":           {hardware.Thin, hardware.Lazy, hardware.Eager},
}

// texts are the options that are free text.
var texts = []string{"cluster", "datacenter", "folder", "guest_key", "guest_user", "resource_pool"}

func readSettings(c target.Config) (settings, error) {
	value, list := c.ReadOptions(choices, texts...)
	place := diag.Position{File: c.File}
	if c.Endpoint == "" {
		list.Add(diag.Diagnostic{Code: "target-missing-key", Pos: place, Message: `key "endpoint" is missing`,
			Hint: "it is the name of the vCenter: endpoint: vcenter.example.com"})
	}
	s := settings{
		datacenter: value["datacenter"], cluster: value["cluster"], folder: value["folder"], pool: value["resource_pool"],
		datastore: c.Pool, network: c.Network, clones: value["template_clones"], disks: value["disks"],
		guestUser: value["guest_user"], guestKey: value["guest_key"],
	}
	var err error
	if s.addresses, err = address.ReadRange(c.Addresses); err != nil {
		list.Errorf(place, "target-address", "%v", err)
	}
	return s, list.Err()
}
