package vsphere

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/vsphere/record"
	"github.com/braggdev/bragg/internal/target/vsphere/vcenter"
)

// survey is the hosts and VMs of the cluster at one moment. Every method that acts begins with one and acts on its result:
// vCenter is the source of truth, and the caller's values may be old.
type survey struct {
	hosts  map[string]*host   // by id
	vms    map[string]*vmInfo // by identity; of all our controllers and runs
	others []*vmInfo          // VMs that Bragg did not make
}

// host is one host of the cluster.
type host struct {
	place
	state       types.HostSystemConnectionState
	maintenance bool
	datastores  []types.ManagedObjectReference
}

// vmInfo is one VM.
type vmInfo struct {
	id    string
	ref   types.ManagedObjectReference
	name  string // in vCenter
	owner record.Owner
	host  *host // nil: vCenter does not know
	state types.VirtualMachinePowerState
	ip    string // of the guest, as its tools report it
	moved string // changes with every setting

	template bool
	// service: vCenter made it for itself, restarts it by itself, and nothing is lost with it (vCLS).
	service bool
}

// serviceExtension is the manager of VMs that vCenter makes for the services of a cluster.
const serviceExtension = "com.vmware.vim.eam"

// answers returns why the host cannot be reached.
func (h *host) answers() error {
	switch h.state {
	case types.HostSystemConnectionStateConnected:
		return nil
	case types.HostSystemConnectionStateDisconnected:
		return fmt.Errorf("host %q is disconnected from the vCenter", h.name)
	}
	return fmt.Errorf("host %q does not answer the vCenter", h.name)
}

// usable returns why no VM can be started on the host.
func (h *host) usable() error {
	if h.maintenance {
		return fmt.Errorf("host %q is in maintenance mode", h.name)
	}
	return h.answers()
}

func (h *host) sees(at place) error {
	if !slices.Contains(h.datastores, at.ref) {
		return fmt.Errorf("host %q does not see datastore %q", h.name, at.name)
	}
	return nil
}

// power is the power state of the VM. While its host does not answer, vCenter shows the last known state, which is none.
func (v *vmInfo) power() target.PowerState {
	switch {
	case v.state != types.VirtualMachinePowerStatePoweredOn:
		return target.PowerOff
	case v.host == nil || v.host.answers() != nil:
		return target.PowerUnknown
	}
	return target.PowerOn
}

// vm is the VM as a value, on the node where it is now.
func (v *vmInfo) vm() target.VM {
	vm := v.owner.Record.VM.Copy()
	vm.Power = v.power()
	if v.host != nil {
		vm.NodeID = v.host.ref.Value
	}
	return vm
}

// hostProps and vmProps are read for all hosts and VMs of the cluster in one call. ExtraConfig is not among them: it holds
// the documents of cloud-init and would make each survey megabytes long.
var (
	hostProps = []string{"name", "runtime.connectionState", "runtime.inMaintenanceMode", "datastore"}
	vmProps   = []string{
		"name", "runtime.host", "runtime.powerState", "config.instanceUuid", "config.annotation", "config.changeVersion", "config.template",
		"guest.ipAddress", "config.managedBy",
	}
)

// surveysMax bounds how often a survey is begun again because VMs were removed while it was made.
const surveysMax = 5

// survey reads the cluster.
func (t *site) survey(ctx context.Context) (*survey, error) {
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	var err error
	for range surveysMax {
		var s *survey
		if s, err = t.look(ctx); err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !vcenter.Gone(err) {
			break
		}
	}
	return nil, t.vc.Explain(fmt.Sprintf("read cluster %q", t.cluster.name), err)
}

func (t *site) look(ctx context.Context) (*survey, error) {
	toVMs := &types.TraversalSpec{Type: "HostSystem", Path: "vm", SelectSet: nil}
	toHosts := &types.TraversalSpec{Type: "ComputeResource", Path: "host", SelectSet: []types.BaseSelectionSpec{toVMs}}
	found, err := mo.RetrievePropertiesEx(ctx, t.vc.Client, types.RetrievePropertiesEx{
		This: t.vc.ServiceContent.PropertyCollector,
		SpecSet: []types.PropertyFilterSpec{{
			ObjectSet: []types.ObjectSpec{{Obj: t.cluster.ref, Skip: types.NewBool(true), SelectSet: []types.BaseSelectionSpec{toHosts}}},
			PropSet:   []types.PropertySpec{{Type: "HostSystem", PathSet: hostProps}, {Type: "VirtualMachine", PathSet: vmProps}},
		}},
	})
	if err != nil {
		return nil, err
	}
	s := &survey{hosts: map[string]*host{}, vms: map[string]*vmInfo{}}
	var machines []mo.VirtualMachine
	for _, one := range found {
		switch one.Obj.Type {
		case "HostSystem":
			var h mo.HostSystem
			if err := mo.LoadObjectContent([]types.ObjectContent{one}, &h); err != nil {
				return nil, err
			}
			t.vc.Remember(one.Obj, h.Name)
			s.hosts[one.Obj.Value] = &host{place{one.Obj, h.Name}, h.Runtime.ConnectionState, h.Runtime.InMaintenanceMode, h.Datastore}
		case "VirtualMachine":
			var vm mo.VirtualMachine
			if err := mo.LoadObjectContent([]types.ObjectContent{one}, &vm); err != nil {
				return nil, err
			}
			t.vc.Remember(one.Obj, vm.Name)
			machines = append(machines, vm)
		}
	}
	return s, t.fill(ctx, s, machines)
}

// fill adds the VMs, whose records are read where they may be ours.
func (t *site) fill(ctx context.Context, s *survey, machines []mo.VirtualMachine) error {
	owners, err := t.known.owners(ctx, t.vc, machines)
	if err != nil {
		return err
	}
	for _, m := range machines {
		v := &vmInfo{ref: m.Self, name: m.Name, state: m.Runtime.PowerState, owner: owners[m.Self]}
		if m.Runtime.Host != nil {
			v.host = s.hosts[m.Runtime.Host.Value]
		}
		if m.Guest != nil {
			v.ip = m.Guest.IpAddress
		}
		if m.Config != nil {
			v.template, v.moved = m.Config.Template, m.Config.ChangeVersion
			v.service = m.Config.ManagedBy != nil && m.Config.ManagedBy.ExtensionKey == serviceExtension
		}
		if v.owner.Mark == "" {
			s.others = append(s.others, v)
			continue
		}
		v.id = v.owner.Record.VM.ID
		s.vms[v.id] = v
	}
	return nil
}

// recordCache keeps the records of VMs, which do not change unless their settings do. The zero value is ready for use.
type recordCache struct {
	mu  sync.Mutex
	all map[types.ManagedObjectReference]cached
}

type cached struct {
	name, version string
	owner         record.Owner
}

// owners returns whose the VMs are.
func (c *recordCache) owners(ctx context.Context, vc *vcenter.Client, machines []mo.VirtualMachine) (map[types.ManagedObjectReference]record.Owner, error) {
	owners, now := map[types.ManagedObjectReference]record.Owner{}, map[types.ManagedObjectReference]cached{}
	var unread []types.ManagedObjectReference
	at := map[types.ManagedObjectReference]mo.VirtualMachine{}
	c.mu.Lock()
	for _, m := range machines {
		annotation, version := "", ""
		if m.Config != nil {
			annotation, version = m.Config.Annotation, m.Config.ChangeVersion
		}
		known, ok := c.all[m.Self]
		switch {
		case !record.Suspect(m.Name, annotation):
		case ok && version != "" && known.version == version && known.name == m.Name:
			owners[m.Self], now[m.Self] = known.owner, known
		default:
			unread, at[m.Self] = append(unread, m.Self), m
		}
	}
	c.mu.Unlock()
	if len(unread) > 0 {
		var read []mo.VirtualMachine
		if err := vc.Collector().Retrieve(ctx, unread, []string{"config.extraConfig", "config.instanceUuid", "config.changeVersion"}, &read); err != nil {
			return nil, err
		}
		for _, m := range read {
			seen := record.Seen{Ref: m.Self.Value, Name: at[m.Self].Name}
			version := ""
			if m.Config != nil {
				seen.InstanceUUID, seen.Extra, version = m.Config.InstanceUuid, m.Config.ExtraConfig, m.Config.ChangeVersion
			}
			owners[m.Self] = record.Read(seen)
			now[m.Self] = cached{at[m.Self].Name, version, owners[m.Self]}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = now
	return owners, nil
}

// owned returns the VMs with that mark, in the order of their names.
func (s *survey) owned(mark string) []*vmInfo {
	var list []*vmInfo
	for _, one := range s.vms {
		if one.owner.Belongs(mark) {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b *vmInfo) int {
		return cmp.Or(strings.Compare(a.owner.Record.VM.Name, b.owner.Record.VM.Name), strings.Compare(a.id, b.id))
	})
	return list
}

var errGone = errors.New("it does not exist")

// resolve returns the VMs, all of which must carry the tag. With orGone, those that do not exist are nil, else they are an
// error.
func (s *survey) resolve(tag target.Tag, vms []target.VM, orGone bool) ([]*vmInfo, error) {
	list := make([]*vmInfo, len(vms))
	for i, vm := range vms {
		one := s.vms[vm.ID]
		switch {
		case one == nil && !orGone:
			return nil, fmt.Errorf("find vm %q: %w", vm.Name, errGone)
		case one != nil && !one.owner.Belongs(tag.Mark()):
			return nil, fmt.Errorf("find vm %q: %w", vm.Name, target.Foreign(fmt.Sprintf("vm %q", vm.Name)))
		}
		list[i] = one
	}
	return list, nil
}

// find surveys the cluster and returns the VMs as they are now: see resolve.
func (t *site) find(ctx context.Context, tag target.Tag, vms []target.VM, orGone bool) ([]*vmInfo, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	s, err := t.survey(ctx)
	if err != nil {
		return nil, err
	}
	return s.resolve(tag, vms, orGone)
}

// hosts reads the hosts of the cluster.
func (t *site) hosts(ctx context.Context) (map[string]*host, error) {
	s, err := t.survey(ctx)
	if err != nil {
		return nil, err
	}
	return s.hosts, nil
}

// host finds a host of the cluster by its id.
func (t *site) host(ctx context.Context, id string) (*host, error) {
	hosts, err := t.hosts(ctx)
	if err != nil {
		return nil, err
	}
	return pick(hosts, id)
}

func pick(hosts map[string]*host, id string) (*host, error) {
	if h := hosts[id]; h != nil {
		return h, nil
	}
	return nil, &diag.Error{Code: "vsphere-no-node", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("find node %q: the cluster has no such host", id)}
}

// marks are those of the run, or runs, that used this target: they created VMs, or listed theirs. The zero value is ready
// for use.
type marks struct{ known sync.Map }

func (m *marks) add(tag target.Tag) { m.known.Store(tag.Mark(), true) }

func (m *marks) has(mark string) bool {
	_, ok := m.known.Load(mark)
	return ok
}
