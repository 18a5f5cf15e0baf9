package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/braggdev/bragg/internal/target"
)

// blueprint is a VM that is about to be made.
type blueprint struct {
	tag    target.Tag
	spec   target.VMSpec
	record record
	node   *node
	pool   pool
	accel  accelerator
	from   *template
	disks  []blueprintDisk
}

// blueprintDisk is a volume to make, by which its disk is made too.
type blueprintDisk struct {
	role   string // "sda", "sdb"
	format string
	make   func(ctx context.Context, b *blueprint, name string) error
}

// Create makes powered-off VMs from templates.
func (t *Target) Create(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]target.VM, error) {
	plans, err := t.plan(ctx, tag, specs)
	if err != nil {
		return nil, err
	}
	for _, b := range plans {
		if err := t.planDisks(b); err != nil {
			t.release(ids(plans)...)
			return nil, fmt.Errorf("create vm %q: %w", b.spec.Name, err)
		}
	}
	return t.buildAll(ctx, plans)
}

// plan checks what can be known before anything is made, and gives each VM its identity and address.
func (t *Target) plan(ctx context.Context, tag target.Tag, specs []target.VMSpec) ([]*blueprint, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	t.remark(tag)
	s, err := t.survey(ctx)
	if err != nil {
		return nil, err
	}
	hosts := map[string]*blueprint{} // what all VMs of a node share
	plans := make([]*blueprint, len(specs))
	for i, spec := range specs {
		b, err := t.planOne(ctx, s, tag, spec, hosts)
		if err != nil {
			return nil, fmt.Errorf("create vm %q: %w", spec.Name, err)
		}
		if slices.ContainsFunc(plans[:i], func(o *blueprint) bool { return o.record.VM.ID == b.record.VM.ID }) {
			return nil, fmt.Errorf("create vm %q: it is asked for twice", spec.Name)
		}
		plans[i] = b
	}
	addresses, err := t.reserve(ctx, s, ids(plans))
	if err != nil {
		return nil, err
	}
	for i, a := range addresses {
		if a != "" {
			plans[i].record.VM.Addresses = []string{a}
		}
	}
	return plans, nil
}

func ids(plans []*blueprint) []string {
	list := make([]string, len(plans))
	for i, b := range plans {
		list[i] = b.record.VM.ID
	}
	return list
}

func (t *Target) planOne(ctx context.Context, s *survey, tag target.Tag, spec target.VMSpec,
	hosts map[string]*blueprint) (*blueprint, error) {
	n, err := t.node(spec.NodeID)
	if err != nil {
		return nil, err
	}
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	id := vmID(tag.Mark(), spec.Name)
	if s.vms[id] != nil {
		return nil, errors.New("it exists already")
	}
	if err := s.down[n.id]; err != nil {
		return nil, fmt.Errorf("node %q does not answer: %w", n.id, err)
	}
	host := hosts[n.id]
	if host == nil {
		host = &blueprint{}
		if host.pool, err = n.readPool(ctx, n.pool); err != nil {
			return nil, err
		}
		if host.accel, err = t.accelerator(ctx, n); err != nil {
			return nil, err
		}
		hosts[n.id] = host
	}
	b := &blueprint{tag: tag, spec: spec, node: n, pool: host.pool, accel: host.accel}
	if b.from, err = t.template(spec.Template); err != nil {
		return nil, err
	}
	b.record = record{
		VM: target.VM{
			ID: id, Name: spec.Name, Group: spec.Group, Ordinal: spec.Ordinal, NodeID: n.id, Disks: []target.Disk{},
			Power: target.PowerOff,
		},
		Template: spec.Template, VCPUs: max(1, spec.VCPUs), RAMBytes: spec.RAMBytes, MAC: macOf(id),
		Bases: b.from.bases(tag.Mark()), Created: time.Now().UTC(),
	}
	return b, nil
}

// ramBytesMin is less than any kernel boots with.
const ramBytesMin = 32 << 20

func checkSpec(spec target.VMSpec) error {
	if !utf8.ValidString(spec.Name) || !utf8.ValidString(spec.Group) {
		return errors.New("the name is no UTF-8")
	}
	if len(spec.DiskBytes) > disksMax-1 {
		return fmt.Errorf("%d disks, want at most %d", len(spec.DiskBytes), disksMax-1)
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

// planDisks gives a new VM the system disk of its template, and empty data disks.
func (t *Target) planDisks(b *blueprint) error {
	if b.from.volume != "" {
		format := t.settings.diskFormat
		if t.settings.clones == clonesLinked {
			format = formatQCOW2
		}
		b.disks = append(b.disks, blueprintDisk{"sda", format, func(ctx context.Context, b *blueprint, name string) error {
			_, err := t.makeSystem(ctx, b.node, b.pool, name, b.from)
			return err
		}})
	}
	for i, size := range b.spec.DiskBytes {
		format := t.settings.diskFormat
		b.addData(i, size, format, func(ctx context.Context, b *blueprint, name string) error {
			return b.node.createVolume(ctx, b.pool, newVolume(name, format, size))
		})
	}
	return nil
}

// byID is where udev puts a SCSI disk of QEMU's, in front of its serial number.
const byID = "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_"

// addData adds the i-th data disk: the first is sdb. A distribution gives such names in the order in which its drivers happen to
// finish, another one at each start, so there the disk is found by its serial number. Guests of bragg image build have no udev, and keep order.
func (b *blueprint) addData(i int, size int64, format string, make func(context.Context, *blueprint, string) error) {
	role := diskName(i + 1)
	b.disks = append(b.disks, blueprintDisk{role, format, make})
	data := target.Disk{Device: "/dev/" + role, SizeBytes: size}
	if b.from.kernel == nil {
		data.Path = byID + serialOf(i+1)
	}
	b.record.VM.Disks = append(b.record.VM.Disks, data)
}

// buildAll makes all VMs, or removes what it made.
func (t *Target) buildAll(ctx context.Context, plans []*blueprint) ([]target.VM, error) {
	defer t.release(ids(plans)...) // from now on the domains say which addresses are taken
	err := target.Each(ctx, len(plans), func(i int) error {
		ended := target.Observe(ctx, plans[i].spec.Name)
		err := t.build(ctx, plans[i])
		ended(err)
		if err != nil {
			return fmt.Errorf("create vm %q: %w", plans[i].spec.Name, err)
		}
		return nil
	})
	vms := make([]target.VM, len(plans))
	for i, b := range plans {
		vms[i] = b.record.vm()
	}
	if err == nil {
		return vms, nil
	}
	// The caller may have given up, and is to find nothing it did not ask for.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeLimit)
	defer cancel()
	if len(plans) > 0 {
		err = errors.Join(err, t.remove(clean, plans[0].tag, vms, ids(plans)))
	}
	return nil, err
}

// build makes everything of a VM, the domain first: from then on there is something that says whose the volumes are.
func (t *Target) build(ctx context.Context, b *blueprint) error {
	b.record.Seeded = t.seeds()
	d, err := t.describeVM(b)
	if err != nil {
		return err
	}
	mark := b.tag.Mark()
	if err := t.memory.keep(remembered{Mark: mark, Node: b.node.id, Record: b.record}); err != nil {
		return err
	}
	if err := b.node.define(ctx, d, mark); err != nil {
		return err
	}
	if err := t.bring(ctx, b.node, b.pool, mark, b.from); err != nil {
		return err
	}
	for _, disk := range b.disks {
		if err := disk.make(ctx, b, volumeName(mark, b.record.VM.ID, disk.role)); err != nil {
			return fmt.Errorf("make disk %s: %w", disk.role, err)
		}
	}
	return t.plant(ctx, b)
}

// define makes a persistent domain. Because an answer may be lost, one that is there already is looked at.
func (n *node) define(ctx context.Context, d domain, mark string) error {
	text, err := d.text()
	if err != nil {
		return err
	}
	return patiently(ctx, func(ctx context.Context) error {
		_, err := n.change(ctx, text, "define", "--file=/dev/stdin")
		return err
	}, func(ctx context.Context) bool {
		one, err := n.sight(ctx, d.UUID)
		return err == nil && one.mark() == mark
	})
}

// sight looks at one domain.
func (n *node) sight(ctx context.Context, id string) (sight, error) {
	out, err := n.query(ctx, "dumpxml", "--domain="+id)
	if err != nil {
		return sight{}, err
	}
	found, err := parseSights(out)
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("node %q: %d domains described, want one", n.id, len(found))
	}
	if err != nil {
		return sight{}, err
	}
	return found[0], nil
}

// describeVM turns a blueprint into a domain.
func (t *Target) describeVM(b *blueprint) (domain, error) {
	id, mark := b.record.VM.ID, b.tag.Mark()
	own, err := newMetadata(b.tag, b.record)
	if err != nil {
		return domain{}, err
	}
	d := machine(b.accel.kind, t.settings.cpu)
	d.Name, d.UUID = domainName(id, b.spec.Name), id
	d.Description = "VM of a Bragg run, removed when that ends. bragg clean removes what a run left."
	d.Metadata = &notes{own}
	d.Memory, d.VCPU, d.IOThreads = amount{"b", b.record.RAMBytes}, b.record.VCPUs, 1
	scsi := controller{Type: "scsi", Model: "virtio-scsi", Driver: &struct {
		IOThread int `xml:"iothread,attr,omitempty"`
	}{1}}
	d.Devices.Controllers = append(d.Devices.Controllers, scsi)
	if k := b.from.kernel; k != nil {
		d.OS.Kernel = b.pool.file(volumeName(mark, k.digest, "kernel"))
		d.OS.Initrd = b.pool.file(volumeName(mark, k.digest, "initrd"))
		d.OS.Cmdline = k.cmdline
	}
	for _, one := range b.disks {
		index := diskIndex(one.role)
		x := scsiDisk(index, b.pool.file(volumeName(mark, id, one.role)), one.format, t.settings.cache)
		if index == 0 {
			x.Boot = &order{1}
		}
		d.Devices.Disks = append(d.Devices.Disks, x)
	}
	if b.record.Seeded {
		d.Devices.Disks = append(d.Devices.Disks, seedDisk(b, b.pool.file(volumeName(mark, id, "seed"))))
	}
	d.Devices.Interfaces = []nic{t.card(b.record.MAC)}
	port := &struct {
		Type string `xml:"type,attr"`
		Port int    `xml:"port,attr"`
	}{Type: "serial"}
	d.Devices.Console = &serial{Type: "pty", Target: port}
	d.Devices.Panic = &panicDevice{"isa"}
	d.Devices.RNG = &rng{Model: "virtio"}
	d.Devices.RNG.Backend.Model, d.Devices.RNG.Backend.Path = "random", "/dev/urandom"
	return d, nil
}

// seedDisk is the disk that tells a guest who it is. Where the system needs no disk it takes the place of sda, so that
// data begins at sdb; elsewhere it is a CD drive, which takes no such name.
func seedDisk(b *blueprint, path string) disk {
	if b.from.kernel != nil {
		d := scsiDisk(0, path, formatRaw, "writeback")
		d.ReadOnly = &struct{}{}
		return d
	}
	d := scsiDisk(disksMax, path, formatRaw, "writeback")
	d.Device, d.ReadOnly, d.Driver.Discard = "cdrom", &struct{}{}, ""
	return d
}

// diskIndex is the inverse of diskName.
func diskIndex(name string) int {
	index := 0
	for _, r := range strings.TrimPrefix(name, "sd") {
		index = index*26 + int(r-'a') + 1
	}
	return index - 1
}

// card is the network card of a VM: on a network of libvirt if the target file names one, else on a bridge of the host.
func (t *Target) card(mac string) nic {
	c := nic{Type: "network", MAC: hwaddr{mac}}
	c.Model.Type = "virtio"
	if bridge, ok := strings.CutPrefix(t.settings.network, "bridge:"); ok {
		c.Type, c.Source.Bridge = "bridge", bridge
		return c
	}
	c.Source.Network = t.settings.network
	return c
}
