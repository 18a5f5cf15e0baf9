package vsphere

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/bmc"
)

// powered is a Target whose nodes have BMCs.
type powered struct {
	*Target
	*bmc.HangingUp
}

var _ target.PowerCutForeseer = powered{}

func (t *Target) powered() powered {
	return powered{t, &bmc.HangingUp{
		Elsewhere: true,
		Nodes:     t.power.bmcs, Usable: func(ctx context.Context, _ string) error { return t.usable(ctx) }, Running: t.power.running,
		HangUp: func(vms []string, _ string) {
			for _, id := range vms {
				t.HangUp(id)
			}
		},
	}}
}

// nodePower is what is known here about the power of nodes, and about cutting it.
type nodePower struct {
	site *site
	bmcs *bmc.Nodes // nil: no node has a BMC
}

// running lists the VMs on a node.
func (p *nodePower) running(ctx context.Context, nodeID string) []string {
	var list []string
	if s, err := p.site.survey(ctx); err == nil {
		for id, one := range s.vms {
			if one.host != nil && one.host.ref.Value == nodeID {
				list = append(list, id)
			}
		}
	}
	return list
}

// off reports whether a node is known to be switched off.
func (p *nodePower) off(ctx context.Context, nodeID string) bool { return p.bmcs.Off(ctx, nodeID) }

// Survey collects the reasons against cutting the power of a node: see bmc.Surveyor.
func (p *nodePower) Survey(ctx context.Context, nodeID string) (bmc.Survey, error) {
	s, err := p.site.survey(ctx)
	if err != nil {
		return bmc.Survey{}, err
	}
	h, err := pick(s.hosts, nodeID)
	if err != nil {
		return bmc.Survey{}, err
	}
	if err := h.answers(); err != nil {
		return bmc.Survey{}, err
	}
	found := bmc.Survey{VMsListed: true, Controller: bmc.No}
	if found.Machine, err = p.identity(ctx, h); err != nil {
		return found, err
	}
	own := bmc.Identity{UUID: bmc.OwnUUID()}
	for _, one := range s.others {
		if one.host == h && one.state == types.VirtualMachinePowerStatePoweredOn && !one.service {
			found.ForeignVMs = append(found.ForeignVMs, one.name)
		}
	}
	for _, one := range s.vms {
		if one.host == h && one.state == types.VirtualMachinePowerStatePoweredOn && !p.site.runs.has(one.owner.Mark) {
			found.ForeignVMs = append(found.ForeignVMs, one.name)
		}
	}
	machines, err := p.machines(ctx, s, h)
	if err != nil {
		return found, err
	}
	found.Controller = controllerOn(own, found.Machine, machines)
	found.Redundant, found.Health = p.health(ctx, s, h)
	return found, nil
}

// identity is that of the host's machine, as ESXi reads it from DMI.
func (p *nodePower) identity(ctx context.Context, h *host) (bmc.Identity, error) {
	var now mo.HostSystem
	if err := p.site.vc.Collector().RetrieveOne(ctx, h.ref, []string{"hardware.systemInfo"}, &now); err != nil {
		return bmc.Identity{}, p.site.vc.Explain(fmt.Sprintf("read host %q", h.name), err)
	}
	if now.Hardware == nil {
		return bmc.Identity{}, nil
	}
	id := bmc.Identity{UUID: now.Hardware.SystemInfo.Uuid}
	if serial := strings.TrimSpace(now.Hardware.SystemInfo.SerialNumber); serial != "" {
		id.Serials = append(id.Serials, serial)
	}
	for _, other := range now.Hardware.SystemInfo.OtherIdentifyingInfo {
		if key := other.IdentifierType.GetElementDescription().Key; key == "ServiceTag" || key == "SerialNumberTag" || key == "EnclosureSerialNumberTag" {
			if text := strings.TrimSpace(other.IdentifierValue); text != "" && text != "None" && !strings.EqualFold(text, "unknown") {
				id.Serials = append(id.Serials, text)
			}
		}
	}
	return id, nil
}

// machines reads the UUIDs that VMs on a host see as their own.
func (p *nodePower) machines(ctx context.Context, s *survey, h *host) (map[string]string, error) {
	var refs []types.ManagedObjectReference
	for _, one := range s.others {
		if one.host == h && !one.template {
			refs = append(refs, one.ref)
		}
	}
	found := map[string]string{}
	if len(refs) == 0 {
		return found, nil
	}
	var read []mo.VirtualMachine
	if err := p.site.vc.Collector().Retrieve(ctx, refs, []string{"name", "config.uuid"}, &read); err != nil {
		return nil, p.site.vc.Explain("read the VMs of a host", err)
	}
	for _, vm := range read {
		if vm.Config != nil {
			found[vm.Name] = vm.Config.Uuid
		}
	}
	return found, nil
}

// health is what is known of redundancy without the node that is to be cut: every other host answers and sees the
// datastore, except those that this program switched off. Redundancy of the storage itself is not visible from here.
func (p *nodePower) health(ctx context.Context, s *survey, cut *host) (bmc.Answer, string) {
	for _, h := range s.hosts {
		if h == cut {
			continue
		}
		err := errors.Join(h.answers(), h.sees(p.site.datastore))
		if err != nil && (p.bmcs == nil || !p.bmcs.HasCutPower(ctx, h.ref.Value)) {
			return bmc.No, "hosts or their datastore are missing: " + err.Error()
		}
	}
	return bmc.Yes, "all other hosts that were not switched off answer and see the datastore; redundancy of the storage itself is not visible from here"
}

// controllerOn reports whether this program runs on a host: on the machine itself, or in one of its VMs.
func controllerOn(own, machine bmc.Identity, vms map[string]string) bmc.Answer {
	if !own.Known() || !machine.Known() {
		return bmc.Unknown
	}
	if match, _ := own.Compare(machine); match != bmc.Differs {
		if match == bmc.Same {
			return bmc.Yes
		}
		return bmc.Unknown
	}
	for _, uuid := range vms {
		if match, _ := own.Compare(bmc.Identity{UUID: uuid}); match == bmc.Same {
			return bmc.Yes
		}
	}
	return bmc.No
}
