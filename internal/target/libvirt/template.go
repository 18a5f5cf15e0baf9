package libvirt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
)

// templates are those of the target file.
type templates struct {
	config  target.Config
	uploads target.KeyLocks

	mu      sync.Mutex
	read    map[string]*template // by name
	brought map[string]bool      // kernels that a storage has
}

// template is what a VM is made from: an image of the pool with a system on it, or a kernel with an initramfs that this
// run uploads.
type template struct {
	name   string
	volume string // of the pool; empty where it is a kernel
	kernel *kernelImage
}

// kernelImage is a template that boots without a disk. Its files are copied to the pool of each node that needs them, and
// removed with the last VM.
type kernelImage struct {
	kernel, initrd string // paths on this machine
	cmdline        string
	digest         string // of both files, in the form of a UUID
}

// get finds a template.
func (t *templates) get(name string) (*template, error) {
	value, err := t.config.Template(name)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.read[name]; known != nil {
		return known, nil
	}
	found, err := t.open(name, value)
	if err == nil {
		t.read[name] = found
	}
	return found, err
}

// open reads a template: a folder that bragg image build made, on this machine, or a volume of the pool. A folder has a slash
// in its path, which no name of a volume has.
func (t *templates) open(name, value string) (*template, error) {
	if !strings.Contains(value, "/") {
		return &template{name: name, volume: value}, nil
	}
	if !filepath.IsAbs(value) {
		value = filepath.Join(filepath.Dir(t.config.File), value)
	}
	found, err := image.Open(value)
	if err != nil {
		return nil, fmt.Errorf("read template %q: %w", name, err)
	}
	sum := found.Manifest.Kernel.SHA256 + found.Manifest.Initramfs.SHA256
	return &template{name: name, kernel: &kernelImage{
		kernel: found.Kernel, initrd: found.Initramfs, cmdline: found.CommandLine, digest: target.VMID("template", sum),
	}}, nil
}

// bases returns the names of the volumes that VMs of the template read.
func (t *template) bases(mark string) []string {
	if t.kernel == nil {
		return nil
	}
	return []string{storage.VolumeName(mark, t.kernel.digest, "kernel"), storage.VolumeName(mark, t.kernel.digest, "initrd")}
}

// upload copies a kernel template to a pool, once for each storage.
func (t *templates) upload(ctx context.Context, p *storage.Pool, mark string, from *template) error {
	if from.kernel == nil {
		return nil
	}
	key := mark + from.kernel.digest + p.Storage()
	defer t.uploads.Lock(key)()
	t.mu.Lock()
	done := t.brought[key]
	t.mu.Unlock()
	if done {
		return nil
	}
	for role, file := range map[string]string{"kernel": from.kernel.kernel, "initrd": from.kernel.initrd} {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read template %q: %w", from.name, err)
		}
		name := storage.VolumeName(mark, from.kernel.digest, role)
		if err := p.Create(ctx, storage.Volume{Name: name, Format: storage.Raw, SizeBytes: int64(len(text))}); err != nil {
			return fmt.Errorf("copy template %q: %w", from.name, err)
		}
		if err := p.Upload(ctx, name, text); err != nil {
			return fmt.Errorf("copy template %q: %w", from.name, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.brought[key] = true
	return nil
}

// forget makes the next VM upload its template again.
func (t *templates) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.brought)
}

// makeSystem clones the system disk of a template: linked, so that it takes no time, or in full.
func (m *builder) makeSystem(ctx context.Context, p *storage.Pool, name string, from *template) error {
	image, err := p.Find(ctx, from.volume)
	if err != nil {
		return fmt.Errorf("find template %q: %w", from.name, err)
	}
	v := storage.Volume{Name: name, Format: m.settings.diskFormat, SizeBytes: image.Capacity}
	if m.settings.clones == clonesLinked {
		v.Format, v.Base, v.BaseFormat = storage.QCOW2, image.Path, image.Format.Type
		return p.Create(ctx, v)
	}
	return p.Copy(ctx, v, from.volume)
}
