package libvirt

import (
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/target"
)

// template is what a VM is made from: an image of the pool with a system on it, or a kernel with an initramfs that this
// run brings along.
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

func (t *Target) templateNames() []string { return slices.Sorted(maps.Keys(t.config.Templates)) }

// template finds a template of the target file.
func (t *Target) template(name string) (*template, error) {
	value, ok := t.config.Templates[name]
	if !ok {
		e := &diag.Error{
			Code: "target-unknown-template", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("find template %q: the target file has none of that name", name),
			Hint:    "name it in \"templates\" of the target file",
		}
		if near := diag.Nearest(name, t.templateNames()); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, e
	}
	t.mu.Lock()
	known := t.templates[name]
	t.mu.Unlock()
	if known != nil {
		return known, nil
	}
	found, err := t.readTemplate(name, value)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.templates[name] = found
	return found, nil
}

// readTemplate finds out what a template of the target file is: a folder that bragg image build made, on this machine, or
// a volume of the pool. A folder has a slash in its path, which no name of a volume has.
func (t *Target) readTemplate(name, value string) (*template, error) {
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
		kernel: found.Kernel, initrd: found.Initramfs, cmdline: found.CommandLine, digest: vmID("template", sum),
	}}, nil
}

// bases returns the names of the volumes that VMs of the template read.
func (t *template) bases(mark string) []string {
	if t.kernel == nil {
		return nil
	}
	return []string{volumeName(mark, t.kernel.digest, "kernel"), volumeName(mark, t.kernel.digest, "initrd")}
}

// bring copies a kernel template to the storage of a node, once.
func (t *Target) bring(ctx context.Context, n *node, p pool, mark string, from *template) error {
	if from.kernel == nil {
		return nil
	}
	key := "bring " + mark + from.kernel.digest + t.storage(n, p)
	defer t.lock(key)()
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
		name := volumeName(mark, from.kernel.digest, role)
		if err := n.createVolume(ctx, p, newVolume(name, formatRaw, int64(len(text)))); err != nil {
			return fmt.Errorf("copy template %q: %w", from.name, err)
		}
		if err := n.uploadVolume(ctx, p, name, text); err != nil {
			return fmt.Errorf("copy template %q: %w", from.name, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.brought[key] = true
	return nil
}

// forgetBrought makes the next VM bring its template again.
func (t *Target) forgetBrought() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.brought)
}

// stored is a volume as it lies in a pool.
type stored struct {
	Name     string `xml:"name"`
	Capacity int64  `xml:"capacity"`
	Path     string `xml:"target>path"`
	Format   struct {
		Type string `xml:"type,attr"`
	} `xml:"target>format"`
}

func (n *node) readVolume(ctx context.Context, p pool, name string) (stored, error) {
	text, err := n.query(ctx, "vol-dumpxml", "--pool="+p.UUID, "--vol="+name)
	if err != nil {
		return stored{}, err
	}
	var v stored
	if err := xml.Unmarshal(text, &v); err != nil {
		return stored{}, fmt.Errorf("read volume %q of node %q: %w", name, n.id, err)
	}
	return v, nil
}

// makeSystem clones the system disk of a template: linked, so that it takes no time, or in full.
func (t *Target) makeSystem(ctx context.Context, n *node, p pool, name string, from *template) (format string, err error) {
	image, err := n.sees(ctx, p, from.volume)
	if err != nil {
		return "", fmt.Errorf("find template %q: %w", from.name, err)
	}
	v := newVolume(name, t.settings.diskFormat, image.Capacity)
	if t.settings.clones == clonesLinked {
		v = v.over(image.Path, image.Format.Type)
		return formatQCOW2, n.createVolume(ctx, p, v)
	}
	return t.settings.diskFormat, n.copyVolume(ctx, p, v, from.volume)
}

func (t *Target) note(name, value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.notes, target.Fact{Name: name, Value: value}) {
		t.notes = append(t.notes, target.Fact{Name: name, Value: value})
	}
}
