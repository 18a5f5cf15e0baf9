package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
)

// Source names the inputs of an image.
type Source struct {
	Package string // path of a Debian package with a kernel and its modules
	Agent   string // path of bragg-agent, for the kernel's architecture
	// FindAgent returns that path if Agent is empty. Architectures have Go's names: amd64, arm64.
	FindAgent func(architecture string) (string, error)
}

// Build makes an image in the folder dir. The same two files produce the same bytes, independent of user, place and time.
func Build(s Source, dir string) (Manifest, error) {
	kernel, err := readKernel(s.Package)
	if err != nil {
		return Manifest{}, err
	}
	if s.Agent == "" && s.FindAgent != nil {
		if s.Agent, err = s.FindAgent(kernel.architecture); err != nil {
			return Manifest{}, err
		}
	}
	agent, err := readAgent(s.Agent, kernel.architecture)
	if err != nil {
		return Manifest{}, err
	}
	modules, err := kernel.choose()
	if err != nil {
		return Manifest{}, badPackage(s.Package, err)
	}
	initramfs, err := writeInitramfs(agent.text, modules, kernel.modules)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{
		Format: Format, Architecture: kernel.architecture, Release: kernel.release,
		Package: kernel.source, Agent: agent.source, AgentVersion: agent.version, CommandLine: CommandLine(kernel.architecture),
	}
	if m.Kernel, err = describe(KernelFile, bytes.NewReader(kernel.image)); err != nil {
		return Manifest{}, err
	}
	if m.Initramfs, err = describe(InitramfsFile, bytes.NewReader(initramfs)); err != nil {
		return Manifest{}, err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return Manifest{}, err
	}
	return m, store(dir, kernel.image, initramfs, append(text, '\n'))
}

// store writes the files, the manifest last and only after removing the former one: a folder with a manifest is complete.
func store(dir string, kernel, initramfs, manifest []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make folder of image: %w", err)
	}
	if err := os.Remove(filepath.Join(dir, ManifestFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace image: %w", err)
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{KernelFile, kernel}, {InitramfsFile, initramfs}, {ManifestFile, manifest}} {
		if err := durable.WriteFile(filepath.Join(dir, f.name), f.text, 0o644); err != nil {
			return fmt.Errorf("write image: %w", err)
		}
	}
	return nil
}

// WriteSecret writes a file that only its owner can read, such as a seed.
func WriteSecret(path string, text []byte) error {
	if err := durable.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	return nil
}

func badPackage(path string, err error) error {
	return &diag.Error{
		Code: "bad-kernel-package", Message: fmt.Sprintf("read kernel package %q", path), Err: err, Exit: diag.ExitData,
		Hint: "give a Debian package that holds a kernel, such as linux-image-6.1.0-50-cloud-amd64_….deb",
	}
}

func badAgent(path string, err error) error {
	return &diag.Error{
		Code: "bad-agent-program", Message: fmt.Sprintf("read agent %q", path), Err: err, Exit: diag.ExitData,
		Hint: "give bragg-agent as \"make build\" makes it, for Linux on the kernel's architecture",
	}
}
