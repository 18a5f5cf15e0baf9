package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/disks"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// builder makes VMs.
type builder struct {
	cluster   *cluster
	claims    *disks.Claims
	snapshots *disks.Snapshots
	settings  settings
	machines  *machines // nil: VMs are pods
}

// plan is a VM to make. from has the source of each disk, nil for empty disks.
type plan struct {
	record object.Record
	from   []*corev1.TypedLocalObjectReference
}

// Create makes powered-off VMs with empty disks: records and volumes. There are no pods yet.
func (b *builder) Create(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]target.VM, error) {
	vms, err := b.create(ctx, tag, specs)
	if err != nil {
		return nil, fmt.Errorf("create VMs: %w", err)
	}
	return vms, nil
}

func (b *builder) create(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]target.VM, error) {
	if err := errors.Join(tag.Check(), b.cluster.usable(ctx)); err != nil {
		return nil, err
	}
	plans, err := b.plan(ctx, tag, specs)
	if err != nil {
		return nil, err
	}
	return b.buildAll(ctx, tag, plans)
}

// plan checks everything that can be checked before anything is made.
func (b *builder) plan(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]plan, error) {
	if _, err := b.cluster.allowed(ctx); err != nil {
		return nil, err
	}
	nodes, err := b.cluster.nodes(ctx)
	if err != nil {
		return nil, err
	}
	existing, err := b.cluster.owned(ctx, tag.Mark())
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, r := range existing {
		names[r.VM.Name] = true
	}
	plans := make([]plan, len(specs))
	for i, spec := range specs {
		at := slices.IndexFunc(nodes, func(n node) bool { return n.config.ID == spec.NodeID })
		switch {
		case at < 0:
			return nil, fmt.Errorf("vm %q: no such node: %q", spec.Name, spec.NodeID)
		case b.cluster.power.off(ctx, spec.NodeID):
			return nil, fmt.Errorf("vm %q: node %q has no power", spec.Name, spec.NodeID)
		case nodes[at].unready() != "":
			return nil, fmt.Errorf("vm %q: node %q %s", spec.Name, spec.NodeID, nodes[at].unready())
		case names[spec.Name]:
			return nil, fmt.Errorf("vm %q exists", spec.Name)
		case b.settings.image == "" && b.cluster.config.Templates[spec.Template] == "":
			return nil, fmt.Errorf("vm %q: the target file has no image for template %q", spec.Name, spec.Template)
		}
		names[spec.Name] = true
		plans[i].record = object.Record{
			Version: object.RecordVersion, Template: spec.Template, VCPUs: spec.VCPUs, RAMBytes: spec.RAMBytes, Block: b.settings.pods.Block,
			ExporterPorts: spec.ExporterPorts, Mark: tag.Mark(),
			VM: target.VM{
				ID: object.NewID(spec.Name), Name: spec.Name, Group: spec.Group, Ordinal: spec.Ordinal, NodeID: spec.NodeID, Power: target.PowerOff,
				Disks: object.Disks(spec.DiskBytes, b.settings.pods.Block),
			},
		}
		if b.machines != nil {
			if err := b.machines.complete(ctx, &plans[i].record, spec); err != nil {
				return nil, fmt.Errorf("vm %q: %w", spec.Name, err)
			}
		}
	}
	return plans, nil
}

func (b *builder) buildAll(ctx context.Context, tag target.Tag, plans []plan) ([]target.VM, error) {
	list := make([]*object.Record, len(plans))
	from := map[string][]*corev1.TypedLocalObjectReference{}
	for i := range plans {
		list[i], from[plans[i].record.VM.ID] = &plans[i].record, plans[i].from
	}
	err := onEach(ctx, "create", list, func(r object.Record) error { return b.build(ctx, r, object.OwnerOf(tag), from[r.VM.ID]) })
	if err != nil {
		return nil, err
	}
	vms := make([]target.VM, len(plans))
	for i, p := range plans {
		vms[i] = current(p.record, state{power: target.PowerOff})
	}
	return vms, nil
}

// build makes one VM. The record comes first: it says whose the claims are.
func (b *builder) build(ctx context.Context, r object.Record, tag object.Owner, from []*corev1.TypedLocalObjectReference) error {
	m, err := r.ConfigMap(tag)
	if err != nil {
		return err
	}
	made, err := api.Create(ctx, b.cluster.client, api.ConfigMaps, m, func(o *corev1.ConfigMap) bool { return object.MarkOf(o) == tag.Mark })
	if err != nil {
		return err
	}
	r.UID = made.UID
	err = b.cluster.records.Await(ctx, r.VM.ID, func(o *api.Seen[corev1.ConfigMap]) (bool, error) { return o != nil, nil })
	if err != nil {
		return err
	}
	if err := b.claims.Make(ctx, r, tag, from); err != nil || b.machines == nil {
		return err
	}
	return b.machines.virt.Prepare(ctx, r, tag)
}

// current is the VM of a record with its current power.
func current(r object.Record, s state) target.VM {
	vm := r.VM
	vm.Power, vm.Disks = s.power, slices.Clone(r.VM.Disks)
	if s.node != "" {
		vm.NodeID = s.node
	}
	return vm
}

// CloneVM copies the disks of a VM by the storage driver: full clones from the claims, linked ones from snapshots of them.
// Whether copies share blocks is up to the driver.
func (b *builder) CloneVM(ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, linked bool) ([]target.VM, error) {
	vms, err := b.clone(ctx, tag, source, specs, linked)
	if err != nil {
		return nil, fmt.Errorf("clone vm %q: %w", source.Name, err)
	}
	return vms, nil
}

func (b *builder) clone(ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, linked bool) ([]target.VM, error) {
	list, err := b.cluster.find(ctx, tag, []target.VM{source}, false)
	if err != nil {
		return nil, err
	}
	origin := *list[0]
	for _, spec := range specs {
		if len(spec.DiskBytes) != len(origin.VM.Disks) {
			return nil, fmt.Errorf("clone %q has %d disks, the source %d", spec.Name, len(spec.DiskBytes), len(origin.VM.Disks))
		}
		for i, size := range spec.DiskBytes {
			if size < origin.VM.Disks[i].SizeBytes {
				return nil, fmt.Errorf("disk %d of clone %q is smaller than its source", i, spec.Name)
			}
		}
	}
	specs = slices.Clone(specs)
	for i := range specs {
		specs[i].Template = origin.Template
	}
	plans, err := b.plan(ctx, tag, specs)
	if err != nil {
		return nil, err
	}
	var from []*corev1.TypedLocalObjectReference
	for _, v := range origin.Volumes() {
		from = append(from, &corev1.TypedLocalObjectReference{Kind: api.Claims.Kind, Name: v.Claim})
	}
	if linked {
		taken, err := b.snapshots.Take(ctx, origin, object.OwnerOf(tag), "clone")
		if err != nil {
			return nil, err
		}
		from = disks.Sources(taken)
	}
	for i := range plans {
		plans[i].from, plans[i].record.System = from, origin.System
	}
	return b.buildAll(ctx, tag, plans)
}

// byName orders VMs.
func byName(a, b target.VM) int { return strings.Compare(a.Name, b.Name) }
