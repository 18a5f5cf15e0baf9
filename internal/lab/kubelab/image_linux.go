package kubelab

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/testreq"
)

// Images that all real nodes have.
const (
	// BusyboxImage has busybox and links for the usual programs in /bin. It sleeps where a pod gives no command.
	BusyboxImage = "kubelab/busybox:1"
	// AgentImage has bragg-agent at /bragg-agent, its entry point, once AgentImage was called.
	agentImage = "kubelab/bragg-agent:1"
)

// Image is an image of one layer.
type Image struct {
	Name       string            // with a tag other than latest, as registries would then be searched
	Files      map[string]string // path in the image → file of the machine, which keeps its mode
	Links      map[string]string // path in the image → target of a symbolic link
	Entrypoint []string
	Env        []string
}

// LoadImage puts an image on all real nodes that are on, and on others when they boot.
func (c *Cluster) LoadImage(t testing.TB, i Image) {
	t.Helper()
	archive, err := writeArchive(filepath.Join(c.Dir, "images"), i)
	if err == nil {
		err = c.keeper.request(order{Do: orderImport, Path: archive})
	}
	if err != nil {
		t.Fatalf("load image %q: %v", i.Name, err)
	}
}

// LoadArchive puts the image of an archive, as "docker save" writes it, on all real nodes that are on.
func (c *Cluster) LoadArchive(t testing.TB, path string) {
	t.Helper()
	if err := c.keeper.request(order{Do: orderImport, Path: path}); err != nil {
		t.Fatalf("load image %s: %v", path, err)
	}
}

// AgentImage builds bragg-agent, puts an image of it on all real nodes and returns the image's name.
func (c *Cluster) AgentImage(t testing.TB) string {
	t.Helper()
	c.agent.Do(func() {
		program := filepath.Join(c.Dir, "bragg-agent")
		build := exec.Command(testreq.Program(t, "go"), "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/bragg-agent")
		build.Dir, build.Env = testreq.RepositoryRoot(t), append(os.Environ(), "CGO_ENABLED=0")
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build bragg-agent: %v: %s", err, text)
		}
		c.LoadImage(t, Image{Name: agentImage, Files: map[string]string{"/bragg-agent": program}, Entrypoint: []string{"/bragg-agent"}})
	})
	return agentImage
}

// busybox is the image of BusyboxImage, also of the sandboxes of pods.
func busybox(program string) Image {
	i := Image{Name: BusyboxImage, Files: map[string]string{"/bin/busybox": program}, Links: map[string]string{}, Entrypoint: []string{"/bin/sh", "-c", "trap exit TERM; while :; do sleep 3600 & wait; done"}}
	for _, name := range strings.Fields("sh cat cp dd df echo env false head httpd id ip ls md5sum mkdir mount nc od ps rm sleep sync tail test touch true umount wget") {
		i.Links["/bin/"+name] = "busybox"
	}
	return i
}

// writeArchive writes an image as "docker save" does, which containerd imports, and returns the path.
func writeArchive(dir string, i Image) (string, error) {
	layer, err := i.layer()
	if err != nil {
		return "", err
	}
	digest := func(data []byte) string {
		sum := sha256.Sum256(data)
		return hex.EncodeToString(sum[:])
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": i.Entrypoint, "Env": append([]string{"PATH=/bin"}, i.Env...)},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
	})
	if err != nil {
		return "", err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": digest(config) + ".json", "RepoTags": []string{i.Name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name string
		data []byte
	}{{digest(config) + ".json", config}, {"layer.tar", layer}, {"manifest.json", manifest}} {
		if err := writeFile(w, f.name, 0o644, f.data); err != nil {
			return "", err
		}
	}
	if err := errors.Join(w.Close(), os.MkdirAll(dir, 0o755)); err != nil {
		return "", err
	}
	to := filepath.Join(dir, strings.NewReplacer("/", "-", ":", "-").Replace(i.Name)+".tar")
	return to, os.WriteFile(to, b.Bytes(), 0o600)
}

func writeFile(w *tar.Writer, name string, mode int64, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// layer is the archive of the image's files. A folder /tmp is there for programs.
func (i Image) layer() ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{"/": true}
	var folder func(name string, mode int64) error
	folder = func(name string, mode int64) error {
		if made[name] {
			return nil
		}
		made[name] = true
		if err := folder(path.Dir(name), 0o755); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: mode})
	}
	if err := folder("/tmp", 0o1777); err != nil {
		return nil, err
	}
	for to, from := range i.Files {
		f, err := os.Open(from)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(f)
		info, stat := f.Stat()
		if err := errors.Join(err, stat, f.Close()); err != nil {
			return nil, err
		}
		if err := errors.Join(folder(path.Dir(to), 0o755), writeFile(w, to[1:], int64(info.Mode().Perm()), data)); err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
	}
	for to, target := range i.Links {
		err := errors.Join(folder(path.Dir(to), 0o755), w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: to[1:], Linkname: target, Mode: 0o777}))
		if err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}
