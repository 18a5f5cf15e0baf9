package libvirt

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// layersMax is below the depth at which libvirt refuses a chain of images.
const layersMax = 150

// SnapshotVMs takes crash-consistent snapshots of all disks of a VM at one instant, without the guest. Later writes go
// to new volumes on top. Snapshots are deleted with their VM.
func (o *operations) SnapshotVMs(ctx context.Context, tag target.Tag, vms []target.VM, _ string) error {
	return o.each(ctx, "snapshot", selection{tag, vms, false}, func(one *vmInfo) error {
		p := one.home()
		now, err := p.node.domains.Get(ctx, one.id) // another call may have added a layer meanwhile
		if err != nil {
			return err
		}
		_, err = snapshot(ctx, presence{p.node, now})
		return err
	})
}

// snapshot puts a new layer on each disk of a VM and returns the layers below, which are read-only from then on. The
// caller holds the lock of the VM.
func snapshot(ctx context.Context, p presence) ([]layer, error) {
	below := p.layers()
	if len(below) == 0 {
		return nil, nil
	}
	home, err := p.node.store.Pool(ctx)
	if err != nil {
		return nil, err
	}
	number := topLayer(below)
	err = virsh.Retry(ctx, func(ctx context.Context) error {
		for {
			if number++; number > layersMax {
				return fmt.Errorf("more than %d snapshots", layersMax)
			}
			text, err := describeSnapshot(home, below, number)
			if err != nil {
				return err
			}
			// libvirt keeps no metadata of the snapshot: VMs with such metadata cannot migrate, and the volumes are enough.
			_, err = p.node.Change(ctx, text, "snapshot-create", "--domain="+p.UUID, "--xmlfile=/dev/stdin", "--disk-only",
				"--atomic", "--no-metadata")
			if !virsh.Says(err, "already exists") { // left by an interrupted attempt
				return err
			}
		}
	}, func(ctx context.Context) bool { // only the answer was lost
		now, err := p.node.domains.Get(ctx, p.UUID)
		return err == nil && topLayer(presence{p.node, now}.layers()) == number
	})
	if err != nil {
		return nil, err
	}
	return below, nil
}

// topLayer returns the highest number of a layer, 0 without any snapshot.
func topLayer(layers []layer) int {
	top := 0
	for _, l := range layers {
		o, _ := storage.ParseVolumeName(l.volume)
		if _, word, ok := strings.Cut(o.Role, "."); ok { // "sdb.1"
			if n, err := strconv.Atoi(word); err == nil {
				top = max(top, n)
			}
		}
	}
	return top
}

// snapshotXML is as https://libvirt.org/formatsnapshot.html has it. Each disk is a pair: its name, and the path of the new layer.
var snapshotXML = virsh.NewTemplate(`<domainsnapshot><name>bragg-{{.Number}}</name><disks>{{range .Disks}}` +
	`<disk name="{{x (index . 0)}}" snapshot="external" type="file"><driver type="qcow2"/><source file="{{x (index . 1)}}"/></disk>` +
	`{{end}}</disks></domainsnapshot>`)

func describeSnapshot(p *storage.Pool, below []layer, number int) ([]byte, error) {
	disks := make([][2]string, len(below))
	for i, l := range below {
		o, ok := storage.ParseVolumeName(l.volume)
		if !ok {
			return nil, fmt.Errorf("volume %q of disk %s is not ours", l.volume, l.device)
		}
		disks[i] = [2]string{l.device, p.File(storage.VolumeName(o.Mark, o.ID, l.device+"."+strconv.Itoa(number)))}
	}
	return snapshotXML.Text(struct {
		Number int
		Disks  [][2]string
	}{number, disks}), nil
}
