package nutanix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
)

// settings are what a target file says to this provider.
type settings struct {
	cluster   string // name or id; "": the only one
	pool      string // storage container; "": the only one
	network   string // subnet; "": the only one
	addresses address.Range
	guestUser string
	guestKey  string
}

// options are those of the target file.
var options = []string{"cluster", "guest_key", "guest_user"}

func readSettings(c target.Config) (settings, error) {
	var list diag.List
	place := diag.Position{File: c.File}
	for _, name := range slices.Sorted(maps.Keys(c.Options)) {
		if !slices.Contains(options, name) {
			list.Add(diag.Diagnostic{
				Code: "target-unknown-option", Pos: place, Message: fmt.Sprintf("unknown option %q", name), Hint: "known: " + strings.Join(options, ", "),
			})
		}
	}
	s := settings{
		cluster: c.Options["cluster"], pool: c.Pool, network: c.Network, guestUser: c.Options["guest_user"], guestKey: c.Options["guest_key"],
	}
	if s.guestKey != "" && s.guestUser == "" {
		list.Errorf(place, "target-option", "option guest_key needs a guest_user")
	}
	var err error
	if s.addresses, err = address.ReadRange(c.Addresses); err != nil {
		list.Errorf(place, "target-address", "%v", err)
	}
	return s, list.Err()
}
