package libvirt

import (
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/address"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
)

// settings are what a target file says to this provider, with defaults filled in.
type settings struct {
	pool        string
	network     string
	accelerator string // accelAuto, or as libvirt calls it: domain.KVM or TCG
	cpu         string
	cache       string
	diskFormat  string
	storage     string
	clones      string
	addresses   address.Range
	guestUser   string
	guestKey    string
	through     bool // programs of a scenario reach guests through their hosts
}

const (
	accelAuto = "auto" // a probe decides

	storageShared = "shared" // all nodes see the same pool
	storageAuto   = "auto"   // netfs pools with one source are shared, others are not

	guestsRouted  = "routed"
	guestsThrough = "through-host"

	clonesLinked = "linked"
	clonesFull   = "full"
)

// choices are the options of the target file and their values, the default first.
var choices = map[string][]string{
	"accelerator":     {accelAuto, domain.KVM, "tcg"},
	"cpu":             {"host-passthrough", "host-model"},
	"cache":           {"none", "directsync", "writethrough", "writeback"},
	"disk_format":     {storage.Raw, storage.QCOW2},
	"storage":         {storageAuto, storageShared},
	"template_clones": {clonesLinked, clonesFull},
	"guest_ssh":       {guestsRouted, guestsThrough},
}

// texts are the options that are free text.
var texts = []string{"guest_key", "guest_user"}

func readSettings(c target.Config) (settings, error) {
	value, list := c.ReadOptions(choices, texts...)
	s := settings{
		pool: c.Pool, network: c.Network, accelerator: value["accelerator"], cpu: value["cpu"], cache: value["cache"],
		diskFormat: value["disk_format"], storage: value["storage"], clones: value["template_clones"],
		guestUser: value["guest_user"], guestKey: value["guest_key"], through: value["guest_ssh"] == guestsThrough,
	}
	if s.accelerator == "tcg" {
		s.accelerator = domain.TCG
	}
	if s.pool == "" {
		s.pool = "default"
	}
	if s.network == "" {
		s.network = "default"
	}
	var err error
	if s.addresses, err = address.ReadRange(c.Addresses); err != nil {
		list.Errorf(diag.Position{File: c.File}, "target-address", "%v", err)
	}
	return s, list.Err()
}
