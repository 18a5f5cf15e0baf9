// Package container writes images of containers as archives, which docker load, podman load, ctr images import and skopeo read. It needs
// none of these programs and no registry.
//
//	programs ──▶ layer.tar ──▶ sha256.json (configuration) ──▶ manifest.json
//
// The same programs give the same bytes: times and owners are zero, and files are in the order of their paths.
package container

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// Image is an image of one layer.
type Image struct {
	Name         string            // with a tag, "bragg-agent:1.0"
	Architecture string            // "amd64", "arm64"
	Programs     map[string][]byte // by their absolute path
	Links        map[string]string // symbolic links: what they name, by their absolute path
	Entrypoint   []string          // empty: the container names its command, which is looked up in the folders of the programs
	Labels       map[string]string
	Root         bool // containers run as root, not as User
}

// User is the number of the user of its containers: as images without a shell call nonroot.
const User = 65532

const (
	folderMode  = 0o755
	programMode = 0o555
	fileMode    = 0o444
	sharedMode  = 0o1777
	linkMode    = 0o777
)

// Write writes the archive and returns the digest of the configuration, by which container runtimes identify the image.
func Write(w io.Writer, i Image) (digest string, err error) {
	layer, err := i.layer()
	if err != nil {
		return "", err
	}
	config, err := json.Marshal(i.config(sum(layer)))
	if err != nil {
		return "", err
	}
	digest = sum(config)
	manifest, err := json.Marshal([]any{map[string]any{"Config": digest + ".json", "RepoTags": []string{i.Name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return "", err
	}
	archive := tar.NewWriter(w)
	for _, f := range []struct {
		name string
		data []byte
	}{{digest + ".json", config}, {"layer.tar", layer}, {"manifest.json", manifest}} {
		if err := add(archive, f.name, fileMode, f.data); err != nil {
			return "", fmt.Errorf("write image %q: %w", i.Name, err)
		}
	}
	return "sha256:" + digest, archive.Close()
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// config is the image's configuration, as the OCI image specification has it.
func (i Image) config(layer string) map[string]any {
	var folders []string
	for _, name := range paths(i.Programs) {
		folders = append(folders, path.Dir(name))
	}
	user := User
	if i.Root {
		user = 0
	}
	return map[string]any{
		"architecture": i.Architecture, "os": "linux", "created": "1970-01-01T00:00:00Z",
		"config": map[string]any{
			"User": fmt.Sprint(user), "Env": []string{"PATH=" + strings.Join(slices.Compact(folders), ":"), "HOME=/tmp"}, "Entrypoint": i.Entrypoint,
			"Labels": i.Labels,
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + layer}},
	}
}

// paths lists the paths of files in their order.
func paths[T any](files map[string]T) []string { return slices.Sorted(maps.Keys(files)) }

// layer is the archive of the files, with a folder for temporary ones.
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
		if err := folder(path.Dir(name), folderMode); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: mode})
	}
	if err := folder("/tmp", sharedMode); err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(paths(i.Programs), paths(i.Links)) {
		if !path.IsAbs(name) || path.Clean(name) != name {
			return nil, fmt.Errorf("program %q: want a clean absolute path", name)
		}
		if err := folder(path.Dir(name), folderMode); err != nil {
			return nil, err
		}
		var err error
		if program, ok := i.Programs[name]; ok {
			err = add(w, name[1:], programMode, program)
		} else {
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name[1:], Linkname: i.Links[name], Mode: linkMode})
		}
		if err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

func add(w *tar.Writer, name string, mode int64, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// architectures by the machine of ELF files.
var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// ArchitectureOf returns the architecture of a program that runs without any other file.
func ArchitectureOf(program []byte) (string, error) {
	p, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return "", fmt.Errorf("not a Linux program: %w", err)
	}
	defer p.Close()
	if slices.ContainsFunc(p.Progs, func(s *elf.Prog) bool { return s.Type == elf.PT_INTERP }) {
		return "", errors.New("it needs shared libraries, and the image has none: build it with CGO_ENABLED=0")
	}
	if a := architectures[p.Machine]; a != "" {
		return a, nil
	}
	return "", fmt.Errorf("unknown architecture %s", p.Machine)
}
