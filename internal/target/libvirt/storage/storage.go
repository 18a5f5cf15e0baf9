// Package storage handles the pools of hosts and their volumes: free space, names with the owner of a volume, and
// creating, copying, filling and deleting volumes. It knows VMs only by the identities in names.
//
//	Store (the pool of one host) ──▶ Pool, as read at one moment ──▶ Create, Copy, Upload, Delete
package storage

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// Store is the pool of one host.
type Store struct {
	host   *virsh.Host
	name   string // as the target file spells it
	shared bool   // all hosts see this pool
	// files is held for writing while libvirt rereads the pool, which it refuses while volumes are being made.
	files sync.RWMutex
	// halted: a refresh of the pool failed, which may have stopped it.
	halted atomic.Bool
}

// New returns the pool of that name on a host; shared means that all hosts of the target use it. It makes no calls.
func New(h *virsh.Host, name string, shared bool) *Store {
	return &Store{host: h, name: name, shared: shared}
}

// Pool is the pool of a host at one point in time, with its operations.
type Pool struct {
	store *Store

	Type      string `xml:"type,attr"`
	Name      string `xml:"name"`
	UUID      string `xml:"uuid"`
	Capacity  int64  `xml:"capacity"`
	Available int64  `xml:"available"`
	Path      string `xml:"target>path"`
	Source    struct {
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

// Pool reads the pool, with the free space of libvirt's last refresh.
func (s *Store) Pool(ctx context.Context) (*Pool, error) {
	if err := s.revive(ctx); err != nil && !virsh.IsLost(err) && !virsh.IsBusy(err) { // the next call has a better error for these
		return nil, err
	}
	text, err := s.host.Query(ctx, "pool-dumpxml", "--pool="+s.name)
	if err != nil {
		return nil, err
	}
	return s.parse(text)
}

func (s *Store) parse(text []byte) (*Pool, error) {
	p := &Pool{store: s}
	if err := xml.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("read pool %q of node %q: %w", s.name, s.host.ID, err)
	}
	if !slices.Contains(filePools, p.Type) || !path.IsAbs(p.Path) || !virsh.IsUUID(p.UUID) {
		return nil, fmt.Errorf("use pool %q of node %q: it is of type %q, want one of %s", s.name, s.host.ID, p.Type,
			strings.Join(filePools, ", "))
	}
	return p, nil
}

// Storage returns the name of the storage behind the pool: hosts with equal names share it. Pools with equal UUIDs on
// different hosts are not necessarily shared: hosts that were installed from one image have the same UUIDs.
func (p *Pool) Storage() string {
	switch {
	case p.store.shared:
		return "shared"
	case p.Type == "netfs":
		return strings.Join([]string{"netfs", p.Source.Host.Name, p.Source.Dir.Path}, " ")
	}
	return p.store.host.ID + " " + p.UUID
}

// File is the path of a volume.
func (p *Pool) File(volume string) string { return path.Join(p.Path, volume) }

// Create creates a volume. An existing one is unchanged, because its name identifies this run as its owner.
func (p *Pool) Create(ctx context.Context, v Volume) error {
	p.store.files.RLock()
	defer p.store.files.RUnlock()
	_, err := p.store.host.Apply(ctx, volumeXML.Text(v), "vol-create", "--pool="+p.UUID, "--file=/dev/stdin")
	if virsh.Exists(err) {
		return nil
	}
	return err
}

// Copy creates a volume with the content of another one in the same pool. A partial copy is deleted and copied again.
func (p *Pool) Copy(ctx context.Context, v Volume, source string) error {
	c := virsh.Call{
		Args:  []string{"vol-create-from", "--pool=" + p.UUID, "--file=/dev/stdin", "--vol=" + source, "--inputpool=" + p.UUID},
		Stdin: volumeXML.Text(v), Limit: virsh.CopyLimit,
	}
	return virsh.Retry(ctx, func(ctx context.Context) error {
		p.store.files.RLock()
		_, err := p.store.host.Run(ctx, c)
		p.store.files.RUnlock()
		if (virsh.IsLost(err) || virsh.Exists(err)) && ctx.Err() == nil {
			return errors.Join(virsh.ErrAgain, err, p.Delete(ctx, v.Name))
		}
		return err
	}, nil)
}

// Upload fills a volume.
func (p *Pool) Upload(ctx context.Context, name string, content []byte) error {
	p.store.files.RLock()
	defer p.store.files.RUnlock()
	_, err := p.store.host.Apply(ctx, content, "vol-upload", "--pool="+p.UUID, "--vol="+name, "--file=/dev/stdin")
	return err
}

// Delete removes a volume, if it exists.
func (p *Pool) Delete(ctx context.Context, name string) error {
	p.store.files.RLock()
	defer p.store.files.RUnlock()
	_, err := p.store.host.Apply(ctx, nil, "vol-delete", "--pool="+p.UUID, "--vol="+name)
	if virsh.IsGone(err) {
		return nil
	}
	return err
}

// Volumes rereads the pool and returns the names of all volumes, ours or not, and also those that QEMU or another host made.
func (p *Pool) Volumes(ctx context.Context) ([]string, error) {
	p.store.files.Lock()
	defer p.store.files.Unlock()
	if err := virsh.Retry(ctx, func(ctx context.Context) error { return p.store.refresh(ctx, virsh.ChangeLimit) }, nil); err != nil {
		return nil, err
	}
	text, err := p.store.host.Query(ctx, "vol-list", "--pool="+p.UUID)
	return parseVolumes(text), err
}

// parseVolumes reads the output of virsh vol-list: a name and a path on each line. A name may have blanks, and no slash.
func parseVolumes(text []byte) []string {
	var names []string
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, " /"); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// Find describes a volume. It rereads the pool to find volumes created by QEMU or another host.
func (p *Pool) Find(ctx context.Context, name string) (Stored, error) {
	v, err := p.find(ctx, name)
	if !virsh.IsGone(err) {
		return v, err
	}
	if _, err := p.Volumes(ctx); err != nil {
		return Stored{}, err
	}
	return p.find(ctx, name)
}

func (p *Pool) find(ctx context.Context, name string) (Stored, error) {
	text, err := p.store.host.Query(ctx, "vol-dumpxml", "--pool="+p.UUID, "--vol="+name)
	if err != nil {
		return Stored{}, err
	}
	var v Stored
	if err := xml.Unmarshal(text, &v); err != nil {
		return Stored{}, fmt.Errorf("read volume %q of node %q: %w", name, p.store.host.ID, err)
	}
	return v, nil
}
