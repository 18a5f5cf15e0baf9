package bmc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
)

// redfish uses one ComputerSystem of a Redfish service (DMTF DSP0266, schema ComputerSystem of DSP8010). It follows the
// links of the service, but only those to the configured address.
type redfish struct {
	node    string
	wire    *wire
	wanted  string // id of the system; "" selects the only one
	systems string // path of the system, once it is known
}

// The fields that are read from Redfish resources.
type (
	redfishLink struct {
		ID string `json:"@odata.id"`
	}
	redfishRoot struct {
		Systems redfishLink `json:"Systems"`
	}
	redfishCollection struct {
		Members []redfishLink `json:"Members"`
		Next    string        `json:"Members@odata.nextLink"`
	}
	redfishSystem struct {
		ID           string `json:"Id"`
		PowerState   string `json:"PowerState"`
		UUID         string `json:"UUID"`
		SerialNumber string `json:"SerialNumber"`
		SKU          string `json:"SKU"` // where Dell stores DMI's serial number
		Actions      struct {
			Reset redfishReset `json:"#ComputerSystem.Reset"`
		} `json:"Actions"`
	}
	redfishReset struct {
		Target  string   `json:"target"`
		Allowed []string `json:"ResetType@Redfish.AllowableValues"`
		Info    string   `json:"@Redfish.ActionInfo"`
	}
	redfishActionInfo struct {
		Parameters []struct {
			Name    string   `json:"Name"`
			Allowed []string `json:"AllowableValues"`
		} `json:"Parameters"`
	}
)

func newRedfish(node string, b target.BMC, user string, secret password) (*redfish, error) {
	w, err := newWire(node, b, user, secret)
	if err != nil {
		return nil, err
	}
	return &redfish{node: node, wire: w, wanted: b.System}, nil
}

func (r *redfish) State(ctx context.Context) (target.PowerState, error) {
	const what = "read the power state"
	system, err := r.system(ctx, what)
	if err != nil {
		return target.PowerUnknown, err
	}
	switch system.PowerState {
	case "On":
		return target.PowerOn, nil
	case "Off":
		return target.PowerOff, nil
	case "PoweringOn", "PoweringOff", "Paused":
		return target.PowerUnknown, nil
	}
	return target.PowerUnknown, fault(CodeGarbage, r.node, what, fmt.Errorf("the power state is %q", quoteOutside(system.PowerState)))
}

func (r *redfish) Identity(ctx context.Context) (Identity, error) {
	system, err := r.system(ctx, "read the identity")
	if err != nil {
		return Identity{}, err
	}
	id := Identity{UUID: system.UUID}
	for _, serial := range []string{system.SerialNumber, system.SKU} {
		if serial != "" {
			id.Serials = append(id.Serials, serial)
		}
	}
	return id, nil
}

// Reset types for each operation, the best first. PushPowerButton is never used: it has the opposite effect if the power
// state is not the expected one.
var (
	resetOn   = []string{"On", "ForceOn"}
	resetOff  = []string{"ForceOff"}
	resetSoft = []string{"GracefulShutdown"}
)

func (r *redfish) On(ctx context.Context) error  { return r.reset(ctx, "power on", resetOn) }
func (r *redfish) Off(ctx context.Context) error { return r.reset(ctx, "cut the power", resetOff) }
func (r *redfish) Soft(ctx context.Context) error {
	return r.reset(ctx, "ask the operating system to stop", resetSoft)
}

func (r *redfish) reset(ctx context.Context, what string, wanted []string) error {
	system, err := r.system(ctx, what)
	if err != nil {
		return err
	}
	action := system.Actions.Reset
	if action.Target == "" {
		return fault(CodeLacks, r.node, what, errors.New("the system offers no ComputerSystem.Reset"))
	}
	allowed := action.Allowed
	if len(allowed) == 0 && action.Info != "" {
		if allowed, err = r.allowed(ctx, what, action.Info); err != nil {
			return err
		}
	}
	chosen := wanted[0] // a service that lists none has those of the schema
	if len(allowed) > 0 {
		i := slices.IndexFunc(wanted, func(w string) bool { return slices.Contains(allowed, w) })
		if i < 0 {
			return fault(CodeLacks, r.node, what, fmt.Errorf("the service allows %s, and not %s",
				quoteOutside(strings.Join(allowed, ", ")), wanted[0]))
		}
		chosen = wanted[i]
	}
	return r.wire.do(ctx, request{what: what, method: http.MethodPost, path: action.Target, body: map[string]string{"ResetType": chosen}}, nil)
}

// allowed reads the reset types of a service that describes them in a separate resource.
func (r *redfish) allowed(ctx context.Context, what, path string) ([]string, error) {
	var info redfishActionInfo
	if err := r.wire.do(ctx, request{what: what, method: http.MethodGet, path: path}, &info); err != nil {
		return nil, err
	}
	for _, p := range info.Parameters {
		if p.Name == "ResetType" {
			return p.Allowed, nil
		}
	}
	return nil, nil
}

// system reads the system, after finding it if necessary.
func (r *redfish) system(ctx context.Context, what string) (redfishSystem, error) {
	var system redfishSystem
	if r.systems == "" {
		path, err := r.find(ctx, what)
		if err != nil {
			return system, err
		}
		r.systems = path
	}
	err := r.wire.do(ctx, request{what: what, method: http.MethodGet, path: r.systems}, &system)
	if err != nil {
		r.systems = "" // after a restart of the BMC, the path may differ
		return redfishSystem{}, err
	}
	return system, nil
}

const redfishPagesMax = 16

// find walks from the service root to the path of the system.
func (r *redfish) find(ctx context.Context, what string) (string, error) {
	var root redfishRoot
	if err := r.wire.do(ctx, request{what: what, method: http.MethodGet, path: "/redfish/v1/"}, &root); err != nil {
		return "", err
	}
	var paths []string
	next := root.Systems.ID
	for range redfishPagesMax {
		if next == "" {
			break
		}
		var page redfishCollection
		if err := r.wire.do(ctx, request{what: what, method: http.MethodGet, path: next}, &page); err != nil {
			return "", err
		}
		for _, m := range page.Members {
			paths = append(paths, m.ID)
		}
		next = page.Next
	}
	return r.choose(what, paths)
}

// choose never guesses: the name must select exactly one of several systems.
func (r *redfish) choose(what string, paths []string) (string, error) {
	fits := paths
	var ids []string
	if r.wanted != "" {
		fits = nil
	}
	for _, path := range paths {
		id := strings.TrimSuffix(path, "/")
		id = id[strings.LastIndexByte(id, '/')+1:]
		ids = append(ids, id)
		if r.wanted != "" && (id == r.wanted || strings.TrimSuffix(path, "/") == strings.TrimSuffix(r.wanted, "/")) {
			fits = append(fits, path)
		}
	}
	if len(fits) == 1 {
		return fits[0], nil
	}
	e := fault(CodeSystem, r.node, what, nil)
	e.Hint = "the service has: " + quoteOutside(strings.Join(ids, ", "))
	switch {
	case len(paths) == 0:
		return "", fault(CodeGarbage, r.node, what, errors.New("the service has no system"))
	case r.wanted != "":
		e.Err = fmt.Errorf("the service has no system %q", r.wanted)
	default:
		e.Err = fmt.Errorf("the service has %d systems", len(paths))
		e.Hint = `name one with bmc: {system: ID}; ` + e.Hint
	}
	return "", e
}

// exposure describes for a report how the connection to a BMC is insecure, "" if it is not.
func exposure(b target.BMC) string {
	if b.Protocol == target.IPMI {
		return ""
	}
	switch b.TLS {
	case target.TLSUnverified:
		return "NOT VERIFIED: a man in the middle can read the password and switch the node"
	case target.TLSNone:
		return "NO TLS: the password can be read on the way"
	}
	return ""
}
