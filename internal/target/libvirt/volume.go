package libvirt

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Volumes are named for their owner:
//
//	bragg-<mark of the tag>-<identity of the VM>.sdb      a data disk
//	…                                          .sdb.1    what was written after the first snapshot
//	…                                          .sda      the system disk, cloned from a template
//	…                                          .seed     what the guest reads when it boots
//	bragg-<mark of the tag>-<digest>.kernel, .initrd      of a template that this run brought
//
// libvirt knows no metadata of volumes. A second file with the tag could be lost, or appear too late; a name cannot: no
// volume of ours exists for a moment without its tag. What matches in whole and has exactly the caller's mark is the
// caller's. Anything else, however alike, belongs to somebody else.
var volumeText = regexp.MustCompile(`^bragg-([0-9a-f]{64})-([0-9a-f]{32})\.(seed|kernel|initrd|sd[a-z]{1,3}(?:\.[0-9]{1,4})?)$`)

func volumeName(mark, id, role string) string {
	return "bragg-" + mark + "-" + strings.ReplaceAll(id, "-", "") + "." + role
}

// volumeOwner is what the name of a volume says.
type volumeOwner struct {
	mark string
	id   string // UUID of the VM; of a kernel or initrd, its digest written like one
	role string
}

func parseVolumeName(name string) (volumeOwner, bool) {
	m := volumeText.FindStringSubmatch(name)
	if m == nil {
		return volumeOwner{}, false
	}
	h := m[2]
	return volumeOwner{
		mark: m[1], id: strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-"), role: m[3],
	}, true
}

// image tells whether the volume belongs to a template rather than to one VM.
func (o volumeOwner) image() bool { return o.role == "kernel" || o.role == "initrd" }

// volume is a volume to make: https://libvirt.org/formatstorage.html.
type volume struct {
	XMLName    xml.Name `xml:"volume"`
	Name       string   `xml:"name"`
	Capacity   amount   `xml:"capacity"`
	Allocation *amount  `xml:"allocation,omitempty"`
	Target     struct {
		Path   string `xml:"path,omitempty"`
		Format struct {
			Type string `xml:"type,attr"`
		} `xml:"format"`
		Permissions *struct {
			Mode string `xml:"mode"`
		} `xml:"permissions,omitempty"`
	} `xml:"target"`
	Backing *backing `xml:"backingStore,omitempty"`
}

type backing struct {
	Path   string `xml:"path"`
	Format struct {
		Type string `xml:"type,attr"`
	} `xml:"format"`
}

const (
	formatRaw   = "raw"
	formatQCOW2 = "qcow2"
)

// newVolume describes a volume that takes no space until it is written.
func newVolume(name, format string, sizeBytes int64) volume {
	v := volume{Name: name, Capacity: amount{"bytes", sizeBytes}, Allocation: &amount{"bytes", 0}}
	v.Target.Format.Type = format
	v.Target.Permissions = &struct {
		Mode string `xml:"mode"`
	}{"0600"}
	return v
}

// over makes the volume a qcow2 overlay of another.
func (v volume) over(path, format string) volume {
	v.Target.Format.Type = formatQCOW2
	v.Backing = &backing{Path: path}
	v.Backing.Format.Type = format
	return v
}

// pool is the storage that holds the volumes of VMs, as one node has it.
type pool struct {
	Type       string `xml:"type,attr"`
	Name       string `xml:"name"`
	UUID       string `xml:"uuid"`
	Capacity   int64  `xml:"capacity"`
	Allocation int64  `xml:"allocation"`
	Available  int64  `xml:"available"`
	Path       string `xml:"target>path"`
	Source     struct {
		Host struct {
			Name string `xml:"name,attr"`
		} `xml:"host"`
		Dir struct {
			Path string `xml:"path,attr"`
		} `xml:"dir"`
	} `xml:"source"`
}

// filePools are the kinds of pools whose volumes are files: others hold no qcow2, without which there are neither
// snapshots nor linked clones.
var filePools = []string{"dir", "fs", "netfs"}

// readPool asks the node for its pool, with the free space of when libvirt last read it.
func (n *node) readPool(ctx context.Context, name string) (pool, error) {
	if err := n.revive(ctx, name); err != nil && !isLost(err) && !isBusy(err) { // what is lost or busy, the next call tells better
		return pool{}, err
	}
	text, err := n.query(ctx, "pool-dumpxml", "--pool="+name)
	if err != nil {
		return pool{}, err
	}
	return n.parsePool(name, text)
}

func (n *node) parsePool(name string, text []byte) (pool, error) {
	var p pool
	if err := xml.Unmarshal(text, &p); err != nil {
		return pool{}, fmt.Errorf("read pool %q of node %q: %w", name, n.id, err)
	}
	if !slices.Contains(filePools, p.Type) || !path.IsAbs(p.Path) || !idText.MatchString(p.UUID) {
		return pool{}, fmt.Errorf("use pool %q of node %q: it is of type %q, want one of %s", name, n.id, p.Type,
			strings.Join(filePools, ", "))
	}
	return p, nil
}

func (p pool) file(volume string) string { return path.Join(p.Path, volume) }

// createVolume makes a volume; one that exists is left as it is, because nobody else can have made one of that name.
func (n *node) createVolume(ctx context.Context, p pool, v volume) error {
	text, err := xml.Marshal(v)
	if err != nil {
		return fmt.Errorf("describe volume: %w", err)
	}
	n.files.RLock()
	defer n.files.RUnlock()
	err = patiently(ctx, func(ctx context.Context) error {
		_, err := n.change(ctx, text, "vol-create", "--pool="+p.UUID, "--file=/dev/stdin")
		return err
	}, nil)
	if isThere(err) {
		return nil
	}
	return err
}

// copyVolume makes a volume with the content of another one of the same pool. Half a copy is removed and made again.
func (n *node) copyVolume(ctx context.Context, p pool, v volume, source string) error {
	text, err := xml.Marshal(v)
	if err != nil {
		return fmt.Errorf("describe volume: %w", err)
	}
	return patiently(ctx, func(ctx context.Context) error {
		n.files.RLock()
		_, err := n.run(ctx, call{
			args: []string{"vol-create-from", "--pool=" + p.UUID, "--file=/dev/stdin", "--vol=" + source, "--inputpool=" + p.UUID}, stdin: text,
			limit: copyLimit,
		})
		n.files.RUnlock()
		if (isLost(err) || isThere(err)) && ctx.Err() == nil {
			return errors.Join(errAgain, err, n.deleteVolume(ctx, p, v.Name))
		}
		return err
	}, nil)
}

// uploadVolume fills a volume.
func (n *node) uploadVolume(ctx context.Context, p pool, name string, content []byte) error {
	n.files.RLock()
	defer n.files.RUnlock()
	return patiently(ctx, func(ctx context.Context) error {
		_, err := n.run(ctx, call{
			args:  []string{"vol-upload", "--pool=" + p.UUID, "--vol=" + name, "--file=/dev/stdin"},
			stdin: content, limit: changeLimit,
		})
		return err
	}, nil)
}

// deleteVolume removes a volume; one that is gone is no error.
func (n *node) deleteVolume(ctx context.Context, p pool, name string) error {
	n.files.RLock()
	defer n.files.RUnlock()
	err := patiently(ctx, func(ctx context.Context) error {
		_, err := n.change(ctx, nil, "vol-delete", "--pool="+p.UUID, "--vol="+name)
		return err
	}, nil)
	if isGone(err) {
		return nil
	}
	return err
}

// listVolumes returns the names of all volumes that have the form of ours, whosever they are. Volumes that QEMU or
// another host made are seen too.
func (n *node) listVolumes(ctx context.Context, p pool) ([]string, error) {
	text, err := n.poolText(ctx, p)
	return volumesOf(text), err
}

// poolText is what virsh says of all volumes of a pool that was read anew.
func (n *node) poolText(ctx context.Context, p pool) ([]byte, error) {
	n.files.Lock()
	defer n.files.Unlock()
	if err := patiently(ctx, func(ctx context.Context) error { return n.refresh(ctx, p.UUID, changeLimit) }, nil); err != nil {
		return nil, err
	}
	return n.query(ctx, "vol-list", "--pool="+p.UUID)
}

// volumesOf reads the output of virsh vol-list: a name and a path on each line.
func volumesOf(text []byte) []string {
	var names []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && volumeText.MatchString(fields[0]) {
			names = append(names, fields[0])
		}
	}
	return names
}
