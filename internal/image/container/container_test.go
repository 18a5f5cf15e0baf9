package container_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/image/container"
)

func read(t *testing.T, archive []byte) (names []string, files map[string][]byte) {
	t.Helper()
	files = map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, files
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.IsZero() && h.ModTime.Unix() != 0 || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s has a time or an owner: %+v", h.Name, h)
		}
		names = append(names, fmt.Sprintf("%s %o", h.Name, h.Mode))
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWrite(t *testing.T) {
	i := container.Image{
		Name: "bragg-agent:1", Architecture: "arm64", Programs: map[string][]byte{"/bin/b": []byte("b"), "/bin/a": []byte("a")}, Entrypoint: []string{"/bin/a"},
		Links: map[string]string{"/usr/bin/d": "/bin/b", "/bin/c": "a"},
	}
	var first, second bytes.Buffer
	digest, err := container.Write(&first, i)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := container.Write(&second, i); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("the same image gives other bytes, %v", err)
	}
	_, files := read(t, first.Bytes())
	var manifests []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifests); err != nil || len(manifests) != 1 {
		t.Fatal(manifests, err)
	}
	m := manifests[0]
	if "sha256:"+m.Config != digest+".json" || !slices.Equal(m.RepoTags, []string{"bragg-agent:1"}) || len(m.Layers) != 1 {
		t.Errorf("manifest %+v of %s", m, digest)
	}
	var config struct {
		Architecture, OS string
		Config           struct {
			User       string
			Env        []string
			Entrypoint []string
		}
		RootFS struct {
			IDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(files[m.Config], &config); err != nil {
		t.Fatal(err)
	}
	layer := files[m.Layers[0]]
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); !slices.Equal(config.RootFS.IDs, []string{want}) {
		t.Errorf("layers %q, want %q", config.RootFS.IDs, want)
	}
	if config.Architecture != "arm64" || config.OS != "linux" || config.Config.User != "65532" || config.Config.Entrypoint[0] != "/bin/a" ||
		config.Config.Env[0] != "PATH=/bin" {
		t.Errorf("configuration %+v", config)
	}
	names, _ := read(t, layer)
	if want := []string{"tmp/ 1777", "bin/ 755", "bin/a 555", "bin/b 555", "bin/c 777", "usr/ 755", "usr/bin/ 755", "usr/bin/d 777"}; !slices.Equal(names, want) {
		t.Errorf("the layer has %q, want %q", names, want)
	}
	i.Programs = map[string][]byte{"../a": nil}
	if _, err := container.Write(io.Discard, i); err == nil {
		t.Error("a program outside of the image was taken")
	}
}
