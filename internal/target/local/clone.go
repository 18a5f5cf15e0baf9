package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/braggdev/bragg/internal/target"
)

// CloneVM makes powered-off copies of a VM with the current content of its disks. A disk of a clone may be larger than its
// source, never smaller. Linked clones are the same as full ones here: blocks are shared if the file system supports it.
func (t *Target) CloneVM(
	ctx context.Context, tag target.Tag, source target.VM, specs []target.VMSpec, _ bool,
) ([]target.VM, error) {
	m, err := t.find(tag, source.ID)
	if err != nil {
		return nil, fmt.Errorf("clone vm %q: %w", source.Name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := t.usable(m); err != nil {
		return nil, fmt.Errorf("clone vm %q: %w", source.Name, err)
	}
	disks := m.record.VM.Disks
	for _, spec := range specs {
		if len(spec.DiskBytes) != len(disks) {
			return nil, fmt.Errorf("clone vm %q: clone %q has %d disks, the source %d", source.Name, spec.Name,
				len(spec.DiskBytes), len(disks))
		}
		for i, size := range spec.DiskBytes {
			if size < disks[i].SizeBytes {
				return nil, fmt.Errorf("clone vm %q: disk %d of clone %q is smaller than its source", source.Name, i, spec.Name)
			}
		}
	}
	vms, err := t.create(ctx, tag, specs, func(ctx context.Context, path string, index int, sizeBytes int64) error {
		return copyDisk(ctx, path, disks[index].Path, sizeBytes)
	})
	if err != nil {
		return nil, fmt.Errorf("clone vm %q: %w", source.Name, err)
	}
	return vms, nil
}

const snapshotsMax = 10_000 // per VM

// SnapshotVMs copies the disks of VMs into their folders. Snapshots are numbered, so that a name may be used more than
// once.
func (ms *machines) SnapshotVMs(ctx context.Context, tag target.Tag, vms []target.VM, name string) error {
	return ms.each(ctx, "snapshot", tag, vms, func(m *machine) error { return ms.snapshot(ctx, m, name) })
}

// snapshotInfo is stored beside the disk copies of a snapshot.
type snapshotInfo struct {
	Name string `json:"name"`
}

func (ms *machines) snapshot(ctx context.Context, m *machine, name string) (err error) {
	all := ms.store.path(m.id, "snapshots")
	if err := os.MkdirAll(all, 0o700); err != nil {
		return err
	}
	dir, err := nextFolder(all)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir)) // no partial snapshot
		}
	}()
	for _, d := range m.record.VM.Disks {
		if err := copyDisk(ctx, filepath.Join(dir, filepath.Base(d.Path)), d.Path, d.SizeBytes); err != nil {
			return err
		}
	}
	return replaceJSON(filepath.Join(dir, "snapshot.json"), snapshotInfo{Name: name})
}

// nextFolder makes the folder with the next free number.
func nextFolder(parent string) (string, error) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return "", err
	}
	for n := len(entries) + 1; n <= snapshotsMax; n++ {
		dir := filepath.Join(parent, strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o700); err == nil {
			return dir, nil
		} else if !os.IsExist(err) {
			return "", err
		}
	}
	return "", fmt.Errorf("more than %d snapshots", snapshotsMax)
}
