package libvirt

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// settings are what a target file says to this provider, with defaults filled in.
type settings struct {
	pool        string
	network     string
	accelerator string // accelAuto, accelKVM or accelTCG
	cpu         string
	cache       string
	diskFormat  string
	storage     string
	clones      string
	first, last netip.Addr
	prefix      int
	gateway     string
	guestUser   string
	guestKey    string
}

const (
	storageShared = "shared" // all nodes see the same pool
	storageAuto   = "auto"   // netfs pools with one source are shared, others are not

	clonesLinked = "linked"
	clonesFull   = "full"
)

// choices are the options of the target file and their values, the default first.
var choices = map[string][]string{
	"accelerator":     {accelAuto, accelKVM, "tcg"},
	"cpu":             {"host-passthrough", "host-model"},
	"cache":           {"none", "directsync", "writethrough", "writeback"},
	"disk_format":     {formatRaw, formatQCOW2},
	"storage":         {storageAuto, storageShared},
	"template_clones": {clonesLinked, clonesFull},
}

// texts are the options that are free text.
var texts = []string{"guest_key", "guest_user"}

func readSettings(c target.Config) (settings, error) {
	var list diag.List
	place := diag.Position{File: c.File}
	value := map[string]string{}
	for name, known := range choices {
		value[name] = known[0]
	}
	for _, name := range slices.Sorted(maps.Keys(c.Options)) {
		known, ok := choices[name]
		switch given := c.Options[name]; {
		case slices.Contains(texts, name):
			value[name] = given
		case !ok:
			options := slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(choices)), texts...)))
			list.Add(diag.Diagnostic{Code: "target-unknown-option", Pos: place, Message: fmt.Sprintf("unknown option %q", name),
				Hint: "known: " + strings.Join(options, ", ")})
		case !slices.Contains(known, given):
			list.Errorf(place, "target-option", "option %s is %q, want one of %s", name, given, strings.Join(known, ", "))
		default:
			value[name] = given
		}
	}
	s := settings{
		pool: c.Pool, network: c.Network, accelerator: value["accelerator"], cpu: value["cpu"], cache: value["cache"],
		diskFormat: value["disk_format"], storage: value["storage"], clones: value["template_clones"],
		prefix: c.Addresses.Prefix, gateway: c.Addresses.Gateway,
		guestUser: value["guest_user"], guestKey: value["guest_key"],
	}
	if s.accelerator == "tcg" {
		s.accelerator = accelTCG
	}
	if s.pool == "" {
		s.pool = "default"
	}
	if s.network == "" {
		s.network = "default"
	}
	if c.Addresses.First != "" {
		var errs [2]error
		s.first, errs[0] = netip.ParseAddr(c.Addresses.First)
		s.last, errs[1] = netip.ParseAddr(c.Addresses.Last)
		if errs[0] != nil || errs[1] != nil {
			list.Errorf(place, "target-address", "addresses: %q to %q is no range", c.Addresses.First, c.Addresses.Last)
		}
	}
	return s, list.Err()
}
