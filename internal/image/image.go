// Package image makes the images and seeds from which VMs start. It does not depend on a hypervisor and starts no VMs:
// providers pass its files to their hypervisor.
//
//	BuildDistribution  names of packages ──▶ cloud image of Debian with them, its recipe
//	Build  kernel package + bragg-agent ──▶ folder: kernel, initramfs with the agent as init, manifest   (boots in seconds)
//	Open   folder ──▶ Image, its files checked
//	Seed   what makes one VM of many ──▶ bytes of a small disk, for guests of Build and for cloud images alike
package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/diag"
)

// Names of the files of an image.
const (
	ManifestFile  = "image.json"
	KernelFile    = "vmlinuz"
	InitramfsFile = "initramfs"
)

// Format is incremented when an older reader could misread a manifest.
const Format = 1

// CommandLine returns the kernel's command line: errors only, to the screen and the first serial line. A kernel after an
// oops must not continue in an undefined state: it panics, which the hypervisor notices through a pvpanic device, and
// otherwise reboots. An unexplained NMI panics too, so that a panic can be injected.
func CommandLine(architecture string) string {
	serial, x86 := "ttyS0", " unknown_nmi_panic"
	if architecture == "arm64" {
		serial, x86 = "ttyAMA0", ""
	}
	return "console=tty0 console=" + serial + " quiet oops=panic panic=-1" + x86
}

// Manifest describes an image: the content of ManifestFile.
type Manifest struct {
	Format       int    `json:"format"`
	Architecture string `json:"architecture"` // Go's name: amd64, arm64
	Release      string `json:"kernel_release"`
	Package      File   `json:"kernel_package"` // source of the kernel
	Agent        File   `json:"agent"`
	AgentVersion string `json:"agent_version"`
	Kernel       File   `json:"kernel"`
	Initramfs    File   `json:"initramfs"`
	CommandLine  string `json:"command_line"`
}

// File identifies a file by its content.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Image is an image on this machine.
type Image struct {
	Manifest
	Kernel    string // path
	Initramfs string // path
}

func broken(dir string, err error) error {
	return &diag.Error{
		Code: "bad-image", Message: fmt.Sprintf("open image %q", dir), Err: err, Exit: diag.ExitData,
		Hint: "make it again with: bragg image build",
	}
}

// Open reads the manifest of an image and checks that its files are unchanged.
func Open(dir string) (Image, error) {
	text, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if err != nil {
		return Image{}, broken(dir, err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return Image{}, broken(dir, fmt.Errorf("read %s: %w", ManifestFile, err))
	}
	if m.Format != Format {
		return Image{}, broken(dir, fmt.Errorf("its format is %d, and this program knows %d", m.Format, Format))
	}
	for name, want := range map[string]File{KernelFile: m.Kernel, InitramfsFile: m.Initramfs} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return Image{}, broken(dir, err)
		}
		got, err := describe(name, f)
		_ = f.Close()
		if err != nil {
			return Image{}, broken(dir, err)
		}
		if got != want {
			return Image{}, broken(dir, fmt.Errorf("%s is not the file that the manifest describes", name))
		}
	}
	return Image{Manifest: m, Kernel: filepath.Join(dir, KernelFile), Initramfs: filepath.Join(dir, InitramfsFile)}, nil
}

func describe(name string, r io.Reader) (File, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	if err != nil {
		return File{}, fmt.Errorf("read %s: %w", name, err)
	}
	return File{Name: name, Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}
