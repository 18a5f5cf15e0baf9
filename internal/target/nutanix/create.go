package nutanix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
	"github.com/braggdev/bragg/internal/target/nutanix/prism"
	"github.com/braggdev/bragg/internal/wait"
)

// builder makes VMs.
type builder struct {
	cluster   *cluster
	templates *templates
	seeds     *seeds
	remover   *remover // of what a failed call made
}

// blueprint is a VM that is about to be made.
type blueprint struct {
	record  record
	spec    ahv.Spec
	request uuid.UUID // the id of the request, also of repeats
}

// Create makes powered-off VMs from images.
func (m *builder) Create(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]target.VM, error) {
	plans, err := m.plan(ctx, tag, specs)
	if err != nil {
		return nil, err
	}
	defer m.cluster.addresses.Release(names(plans)...)
	for _, b := range plans {
		if b.spec.Image, err = m.templates.get(ctx, b.record.Template); err != nil {
			return nil, fmt.Errorf("create vm %q: %w", b.record.Name, err)
		}
	}
	return m.buildAll(ctx, tag, plans, func(ctx context.Context, b *blueprint) (string, error) {
		return m.cluster.ahv.Create(ctx, b.spec, b.request)
	})
}

// plan checks what can be known before anything is made, and gives each VM its address.
func (m *builder) plan(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]*blueprint, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	m.cluster.runs.add(tag)
	s, err := m.cluster.survey(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := m.cluster.fresh(ctx)
	if err != nil {
		return nil, err
	}
	subnet, err := m.cluster.ahv.Subnet(ctx, m.cluster.settings.network)
	if err != nil {
		return nil, err
	}
	categories, err := m.cluster.categories(ctx)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	var used []string
	for _, one := range s.vms {
		taken[one.VM.Name] = true
		used = append(used, one.record.Addresses...)
	}
	plans := make([]*blueprint, len(specs))
	for i, spec := range specs {
		b, err := m.planOne(tag, spec, nodes)
		if err == nil && taken[b.spec.Name] {
			err = errors.New("it exists already")
		}
		if err != nil {
			return nil, fmt.Errorf("create vm %q: %w", spec.Name, err)
		}
		taken[b.spec.Name], b.spec.Subnet, b.spec.Categories = true, subnet.ExtID, categories
		plans[i] = b
	}
	return plans, m.reserve(ctx, plans, used)
}

// reserve gives VMs addresses of the target file's range, if there is one.
func (m *builder) reserve(ctx context.Context, plans []*blueprint, used []string) error {
	addresses, err := m.cluster.addresses.Reserve(ctx, used, names(plans))
	if err != nil {
		return err
	}
	for i, a := range addresses {
		if a != "" {
			plans[i].record.Addresses, plans[i].spec.Address = []string{a}, a
		}
	}
	return nil
}

func names(plans []*blueprint) []string {
	list := make([]string, len(plans))
	for i, b := range plans {
		list[i] = b.spec.Name
	}
	return list
}

func (m *builder) planOne(tag target.Tag, spec target.VMSpec, nodes []*node) (*blueprint, error) {
	n, err := of(nodes, spec.NodeID)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(n.up(), checkSpec(spec)); err != nil {
		return nil, err
	}
	b := &blueprint{request: uuid.New(), record: record{
		Mark: tag.Mark(), Name: spec.Name, Group: spec.Group, Ordinal: spec.Ordinal, Node: n.id, Template: spec.Template,
		VCPUs: max(1, spec.VCPUs), RAMBytes: spec.RAMBytes, DiskBytes: slices.Clone(spec.DiskBytes),
	}}
	b.spec = ahv.Spec{
		Name: prismName(tag.Mark(), spec.Name), Host: n.host.ExtID, Sockets: b.record.VCPUs, Cores: 1, RAMBytes: spec.RAMBytes,
		Container: m.cluster.container.Key(), DiskBytes: b.record.DiskBytes,
	}
	if t := spec.Topology; t.Set() {
		b.spec.Sockets, b.spec.Cores, b.spec.Threads = t.Sockets, t.Cores, t.Threads
	}
	return b, nil
}

// Bounds of AHV.
const (
	ramBytesMin = 32 << 20
	disksMax    = 255
)

func checkSpec(spec target.VMSpec) error {
	if !utf8.ValidString(spec.Name) || !utf8.ValidString(spec.Group) {
		return errors.New("name is not valid UTF-8")
	}
	if len(spec.DiskBytes) > disksMax {
		return fmt.Errorf("%d disks, want at most %d", len(spec.DiskBytes), disksMax)
	}
	for _, size := range spec.DiskBytes {
		if size <= 0 || size%512 != 0 {
			return fmt.Errorf("disk of %d bytes, want a multiple of 512", size)
		}
	}
	if spec.RAMBytes < ramBytesMin {
		return fmt.Errorf("%d bytes of memory, want at least %d", spec.RAMBytes, ramBytesMin)
	}
	return nil
}

// undoMax bounds the removal of what a failed call made.
const undoMax = 5 * time.Minute

// buildAll makes all VMs, or removes what it made.
func (m *builder) buildAll(
	ctx context.Context, tag target.Tag, plans []*blueprint, build func(context.Context, *blueprint) (id string, err error),
) ([]target.VM, error) {
	made := make([]*info, len(plans))
	err := target.Each(ctx, len(plans), func(i int) (err error) {
		ended := target.Observe(ctx, plans[i].record.Name)
		defer func() { ended(err) }()
		inner, done := wait.Outlasting(ctx, settleMax)
		defer done()
		if made[i], err = m.buildOne(inner, plans[i], build); err != nil {
			return fmt.Errorf("create vm %q: %w", plans[i].record.Name, err)
		}
		return nil
	})
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		vms := make([]target.VM, len(plans))
		for i, one := range made {
			vms[i] = one.vm(m.cluster.nodes)
		}
		return vms, nil
	}
	// Also for a caller that was cancelled, no VM is left of a call that failed.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoMax)
	defer cancel()
	return nil, errors.Join(err, m.undo(clean, tag, plans))
}

// buildOne makes one VM. If Prism does not say what became of the request, the VM is looked for by its name.
func (m *builder) buildOne(
	ctx context.Context, b *blueprint, build func(context.Context, *blueprint) (string, error),
) (*info, error) {
	var err error
	if b.spec.Description, err = b.record.describe(); err != nil {
		return nil, err
	}
	if b.spec.UserData, err = m.seeds.userData(b.record); err != nil {
		return nil, err
	}
	id, err := build(ctx, b)
	if err != nil && !prism.Uncertain(err) {
		return nil, err
	}
	if id == "" {
		found, looked := m.cluster.ahv.VMs(ctx, b.spec.Name)
		if looked != nil || len(found) == 0 {
			return nil, errors.Join(err, looked, errors.New("prism does not show the VM that it made"))
		}
		id = found[0].ExtID
	}
	return &info{VM: ahv.VM{ExtID: id, Name: b.spec.Name, Power: ahv.Off}, record: b.record, finished: true}, nil
}

// undo removes the VMs of a call.
func (m *builder) undo(ctx context.Context, tag target.Tag, plans []*blueprint) error {
	s, err := m.cluster.survey(ctx)
	if err != nil {
		return err
	}
	var list []*info
	for _, one := range s.owned(tag.Mark()) {
		if slices.ContainsFunc(plans, func(b *blueprint) bool { return b.spec.Name == one.VM.Name }) {
			list = append(list, one)
		}
	}
	return m.remover.remove(ctx, tag, list)
}
