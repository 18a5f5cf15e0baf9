package nutanix

import (
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
)

// settings are what a target file says to this provider.
type settings struct {
	cluster    string // name or id; "": the only one
	pool       string // storage container; "": the only one
	network    string // subnet; "": the only one
	addresses  address.Range
	categories []category // of VMs
	guestUser  string
	guestKey   string
}

// options are those of the target file.
var options = []string{"categories", "cluster", "guest_key", "guest_user"}

func readSettings(c target.Config) (settings, error) {
	value, list := c.ReadOptions(nil, options...)
	place := diag.Position{File: c.File}
	s := settings{
		cluster: value["cluster"], pool: c.Pool, network: c.Network, guestUser: value["guest_user"], guestKey: value["guest_key"],
	}
	if s.guestKey != "" && s.guestUser == "" {
		list.Errorf(place, "target-option", "option guest_key needs a guest_user")
	}
	var err error
	if s.categories, err = readCategories(value["categories"]); err != nil {
		list.Errorf(place, "target-option", "%v", err)
	}
	if s.addresses, err = address.ReadRange(c.Addresses); err != nil {
		list.Errorf(place, "target-address", "%v", err)
	}
	return s, list.Err()
}
