package nutanix

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
)

// templates are those of the target file: images of Prism by name or id, or files on this machine, which have a slash in their path.
// A file is uploaded once: its image has the digest in its name, and later runs find it. Images are shared by runs and stay.
type templates struct {
	cluster *cluster

	mu    sync.Mutex // held during an upload, so that there is one
	found map[string]string
}

// get returns the id of the image of a template.
func (t *templates) get(ctx context.Context, name string) (string, error) {
	value, err := t.cluster.config.Template(name)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if id := t.found[name]; id != "" {
		return id, nil
	}
	id, err := t.find(ctx, value)
	if err != nil {
		return "", fmt.Errorf("find template %q: %w", name, err)
	}
	t.found[name] = id
	return id, nil
}

// check returns which templates do not exist. It uploads nothing.
func (t *templates) check(ctx context.Context) error {
	images, err := t.images().List(ctx)
	if err != nil {
		return fmt.Errorf("list images: %w", err)
	}
	var faults []error
	for _, name := range t.cluster.config.TemplateNames() {
		value := t.cluster.config.Templates[name]
		if isFile(value) {
			faults = append(faults, t.cluster.config.CheckTemplateFile(name))
		} else if _, err = ahv.PickImage(images, value); err != nil {
			faults = append(faults, fmt.Errorf("find template %q: %w", name, err))
		}
	}
	return all(faults...)
}

func isFile(value string) bool { return strings.Contains(value, "/") }

// path is that of a file, relative to the target file.
func (t *templates) path(value string) string {
	if filepath.IsAbs(value) {
		return value
	}
	return filepath.Join(filepath.Dir(t.cluster.config.File), value)
}

func (t *templates) find(ctx context.Context, value string) (string, error) {
	if !isFile(value) {
		image, err := t.images().Find(ctx, value)
		return image.ExtID, err
	}
	value = t.path(value)
	sum, err := digest(value)
	if err != nil {
		return "", err
	}
	name := prefix + "image-" + sum
	all, err := t.images().List(ctx)
	if err != nil {
		return "", err
	}
	// Two controllers may upload the same file at the same time. Either image will do.
	if i := slices.IndexFunc(all, func(i ahv.Image) bool { return i.Name == name && i.Bytes > 0 }); i >= 0 {
		return all[i].ExtID, nil
	}
	return t.images().Upload(ctx, name, "Uploaded by Bragg for test runs. It may be deleted when no run uses it.", value)
}

func (t *templates) images() ahv.Images { return ahv.Images{Prism: t.cluster.client} }

// digest is the SHA-256 of a file.
func digest(path string) (string, error) {
	if err := regular(path); err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// regular returns why a path is not an image.
func regular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%q is not a regular file: want an image of a disk, such as bragg image build makes", path)
	}
	return nil
}
