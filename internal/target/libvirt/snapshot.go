package libvirt

import (
	"context"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/target"
)

// layersMax is below the depth at which libvirt refuses a chain of images.
const layersMax = 150

// SnapshotVMs takes snapshots of all disks of a VM at one instant, without the help of its guest: as a power cut would
// leave them. What is written from then on goes to new volumes on top. Snapshots end with their VM.
func (t *Target) SnapshotVMs(ctx context.Context, tag target.Tag, vms []target.VM, _ string) error {
	list, err := t.find(ctx, tag, vms, false)
	if err != nil {
		return fmt.Errorf("snapshot VMs: %w", err)
	}
	return onEach(ctx, "snapshot", list, func(i int) error {
		defer t.lock(list[i].id)()
		p := list[i].main()
		now, err := p.node.sight(ctx, list[i].id) // another call may have added a layer meanwhile
		if err != nil {
			return err
		}
		_, err = t.snapshot(ctx, presence{p.node, now})
		return err
	})
}

// snapshot puts a new layer on each disk of a VM and returns the layers below, which nobody writes to any more. The
// caller holds the lock of the VM.
func (t *Target) snapshot(ctx context.Context, p presence) ([]layer, error) {
	below := p.layers()
	if len(below) == 0 {
		return nil, nil
	}
	home, err := p.node.readPool(ctx, p.node.pool)
	if err != nil {
		return nil, err
	}
	number := topLayer(below)
	err = patiently(ctx, func(ctx context.Context) error {
		for {
			if number++; number > layersMax {
				return fmt.Errorf("more than %d snapshots", layersMax)
			}
			text, err := describeSnapshot(home, below, number)
			if err != nil {
				return err
			}
			// libvirt keeps no record of the snapshot: VMs with such records cannot move, and the volumes say it all.
			_, err = p.node.change(ctx, text, "snapshot-create", "--domain="+p.UUID, "--xmlfile=/dev/stdin", "--disk-only",
				"--atomic", "--no-metadata")
			if !said(err, "already exists") { // of an attempt that was cut off
				return err
			}
		}
	}, func(ctx context.Context) bool { // only the answer was lost
		now, err := p.node.sight(ctx, p.UUID)
		return err == nil && topLayer(presence{p.node, now}.layers()) == number
	})
	if err != nil {
		return nil, err
	}
	return below, nil
}

// topLayer returns the highest number of a layer, 0 where there was no snapshot yet.
func topLayer(layers []layer) int {
	top := 0
	for _, l := range layers {
		if _, word, ok := strings.Cut(l.role(), "."); ok {
			if n, err := strconv.Atoi(word); err == nil {
				top = max(top, n)
			}
		}
	}
	return top
}

// role is the last part of the volume's name: "sdb" or "sdb.1".
func (l layer) role() string {
	o, _ := parseVolumeName(l.volume)
	return o.role
}

// domainsnapshot as https://libvirt.org/formatsnapshot.html has it.
type domainsnapshot struct {
	XMLName xml.Name       `xml:"domainsnapshot"`
	Name    string         `xml:"name"`
	Disks   []snapshotDisk `xml:"disks>disk"`
}

type snapshotDisk struct {
	Name     string `xml:"name,attr"`
	Snapshot string `xml:"snapshot,attr"`
	Type     string `xml:"type,attr"`
	Driver   struct {
		Type string `xml:"type,attr"`
	} `xml:"driver"`
	Source struct {
		File string `xml:"file,attr"`
	} `xml:"source"`
}

func describeSnapshot(p pool, below []layer, number int) ([]byte, error) {
	s := domainsnapshot{Name: "bragg-" + strconv.Itoa(number)}
	for _, l := range below {
		o, ok := parseVolumeName(l.volume)
		if !ok {
			return nil, fmt.Errorf("volume %q of disk %s is none of ours", l.volume, l.device)
		}
		d := snapshotDisk{Name: l.device, Snapshot: "external", Type: "file"}
		d.Driver.Type = formatQCOW2
		d.Source.File = p.file(volumeName(o.mark, o.id, l.device+"."+strconv.Itoa(number)))
		s.Disks = append(s.Disks, d)
	}
	text, err := xml.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("describe snapshot: %w", err)
	}
	return text, nil
}
