package kubelab

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/image/container"
	"github.com/braggdev/bragg/internal/testreq"
)

// Images that all real nodes have.
const (
	// BusyboxImage has busybox and links for the usual programs in /bin. It sleeps where a pod gives no command.
	BusyboxImage = "kubelab/busybox:1"
	// AgentImage has bragg-agent at /bragg-agent, its entry point, once AgentImage was called.
	agentImage = "kubelab/bragg-agent:1"
)

// LoadImage puts an image on all real nodes that are on, and on others when they boot. The name has a tag other than latest, as registries would
// then be searched. Its programs are files of this machine, by their paths in the image.
func (c *Cluster) LoadImage(t testing.TB, i container.Image, programs map[string]string) {
	t.Helper()
	archive, err := writeArchive(filepath.Join(c.Dir, "images"), i, programs)
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
		if err := testreq.Build(c.Dir, "github.com/braggdev/bragg/cmd/bragg-agent"); err != nil {
			t.Fatal(err)
		}
		c.LoadImage(t, container.Image{Name: agentImage, Entrypoint: []string{"/bragg-agent"}}, map[string]string{"/bragg-agent": program})
	})
	return agentImage
}

// busybox is the image of BusyboxImage, also of the sandboxes of pods. Its program is /bin/busybox.
func busybox() container.Image {
	i := container.Image{Name: BusyboxImage, Links: map[string]string{}, Entrypoint: []string{"/bin/sh", "-c", "trap exit TERM; while :; do sleep 3600 & wait; done"}}
	for _, name := range strings.Fields("sh cat cp dd df echo env false head httpd id ip ls md5sum mkdir mount nc od ps rm sleep sync tail test touch true umount wget") {
		i.Links["/bin/"+name] = "busybox"
	}
	return i
}

// writeArchive writes an image whose containers run as root, for containerd, and returns the path.
func writeArchive(dir string, i container.Image, programs map[string]string) (string, error) {
	i.Architecture, i.Root, i.Programs = runtime.GOARCH, true, map[string][]byte{}
	for to, from := range programs {
		text, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		i.Programs[to] = text
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	to := filepath.Join(dir, strings.NewReplacer("/", "-", ":", "-").Replace(i.Name)+".tar")
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = container.Write(f, i)
	return to, errors.Join(err, f.Close())
}
