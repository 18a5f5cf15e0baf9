package image

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/guest"
)

const (
	packageBytesMax = 512 << 20
	imageBytesMax   = 256 << 20
	moduleBytesMax  = 64 << 20
)

// kernel is the content of a kernel package.
type kernel struct {
	release      string
	architecture string
	image        []byte
	modules      map[string]module // by name, with underscores
	builtIn      map[string]bool   // names of modules that are part of the kernel
	source       File
}

// module is one module, uncompressed.
type module struct {
	text    []byte
	needs   []string // direct dependencies
	aliases []string
}

// wanted lists the modules of a guest, in the order in which they are loaded after their dependencies.
var wanted = []struct {
	name string
	// required: without it, a guest on a common hypervisor does not start.
	required bool
	// hardware: loaded only if a device needs it.
	hardware   bool
	parameters string
}{
	{name: "virtio_pci", required: true},
	{name: "virtio_rng"}, // first, so that keys need not wait for entropy
	{name: "qemu_fw_cfg"},
	{name: "pvpanic_mmio", hardware: true}, // reports panics to the hypervisor; loaded early, to report early ones
	{name: "pvpanic_pci", hardware: true},
	{name: "virtio_net", required: true},
	{name: "virtio_blk", required: true},
	{name: "scsi_mod", required: true, parameters: "scan=sync"}, // all disks are known before they get names
	{name: "virtio_scsi", required: true},
	{name: "vmw_pvscsi", hardware: true},
	{name: "ata_piix", hardware: true},
	{name: "ahci", hardware: true},
	{name: "vmxnet3", hardware: true},
	{name: "sd_mod", required: true},
	{name: "sr_mod", required: true},
	{name: "isofs", required: true},
	{name: "button", required: true},
	{name: "evdev", required: true},
}

// readKernel reads a Debian package with a kernel.
func readKernel(file string) (*kernel, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, badPackage(file, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, badPackage(file, err)
	case !info.Mode().IsRegular():
		return nil, badPackage(file, errors.New("not a regular file"))
	case info.Size() > packageBytesMax:
		return nil, badPackage(file, fmt.Errorf("it has %d bytes, want at most %d", info.Size(), packageBytesMax))
	}
	k, err := parseKernel(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return nil, badPackage(file, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, badPackage(file, err)
	}
	k.source, err = describe(filepath.Base(file), f)
	return k, err
}

func parseKernel(r io.Reader) (*kernel, error) {
	data, err := openMember(r, "data.tar")
	if err != nil {
		return nil, err
	}
	defer data.Close()
	k := &kernel{modules: map[string]module{}, builtIn: map[string]bool{}}
	if err := eachFile(data, k.take); err != nil {
		return nil, err
	}
	switch {
	case k.image == nil:
		return nil, errors.New("no kernel in it")
	case len(k.modules) == 0:
		return nil, errors.New("no modules in it")
	}
	return k, nil
}

// take processes one file of the package.
func (k *kernel) take(name string, size int64, r io.Reader) error {
	name = strings.TrimPrefix(name, "usr/") // where Debian has modules since release 13
	if release, ok := strings.CutPrefix(name, "boot/vmlinuz-"); ok {
		if err := k.is(release); err != nil {
			return err
		}
		var err error
		k.image, err = readAtMost(r, size, imageBytesMax)
		return err
	}
	rest, ok := strings.CutPrefix(name, "lib/modules/")
	if !ok {
		return nil
	}
	release, rest, _ := strings.Cut(rest, "/")
	if err := k.is(release); err != nil {
		return err
	}
	if rest == "modules.builtin" {
		text, err := readAtMost(r, size, 1<<20)
		for line := range strings.Lines(string(text)) {
			if name, _, ok := moduleName(strings.TrimSpace(line)); ok {
				k.builtIn[name] = true
			}
		}
		return err
	}
	if name, compression, ok := moduleName(rest); ok {
		m, err := readModule(r, compression, k)
		if err != nil {
			return fmt.Errorf("read module %s: %w", path.Base(rest), err)
		}
		k.modules[name] = m
	}
	return nil
}

// is records the release of the kernel; a package has only one.
func (k *kernel) is(release string) error {
	if k.release != "" && k.release != release {
		return fmt.Errorf("it holds two kernels, %q and %q", k.release, release)
	}
	if release == "" || strings.ContainsAny(release, "/\x00") {
		return errors.New("its kernel has no name")
	}
	k.release = release
	return nil
}

// moduleName returns the name of a module from its file name, and the suffix that defines its compression.
func moduleName(file string) (name, compression string, ok bool) {
	base := path.Base(file)
	name, compression, ok = strings.Cut(base, ".ko")
	return strings.ReplaceAll(name, "-", "_"), compression, ok && name != ""
}

func readAtMost(r io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", size, limit)
	}
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return text, err
}

func readModule(r io.Reader, compression string, k *kernel) (module, error) {
	unpacked, err := unpack(r, compression)
	if err != nil {
		return module{}, err
	}
	defer unpacked.Close()
	text, err := readAtMost(unpacked, 0, moduleBytesMax)
	if err != nil {
		return module{}, err
	}
	object, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return module{}, err
	}
	defer object.Close()
	if k.architecture == "" {
		k.architecture = architectures[object.Machine]
	}
	if k.architecture == "" || k.architecture != architectures[object.Machine] {
		return module{}, fmt.Errorf("its architecture, %s, is not supported for guests", object.Machine)
	}
	m := module{text: text}
	section := object.Section(".modinfo")
	if section == nil {
		return module{}, errors.New("no ELF notes identify it")
	}
	facts, err := section.Data()
	if err != nil {
		return module{}, err
	}
	for fact := range strings.SplitSeq(string(facts), "\x00") {
		key, value, _ := strings.Cut(fact, "=")
		switch {
		case key == "depends" && value != "":
			for need := range strings.SplitSeq(value, ",") {
				m.needs = append(m.needs, strings.ReplaceAll(need, "-", "_"))
			}
		case key == "alias":
			m.aliases = append(m.aliases, value)
		}
	}
	return m, nil
}

// choose selects the modules that a guest needs.
func (k *kernel) choose() (guest.Modules, error) {
	chosen := guest.Modules{Release: k.release, Modules: map[string]guest.Module{}}
	var missing []string
	for _, w := range wanted {
		m, ok := k.modules[w.name]
		if !ok {
			if w.required && !k.builtIn[w.name] {
				missing = append(missing, w.name)
			}
			continue
		}
		if err := k.add(w.name, chosen.Modules, 0); err != nil {
			return chosen, err
		}
		one := chosen.Modules[w.name]
		one.Parameters = w.parameters
		if w.hardware {
			one.Aliases = m.aliases
		}
		chosen.Modules[w.name] = one
		chosen.Load = append(chosen.Load, w.name)
	}
	if len(missing) > 0 {
		return chosen, fmt.Errorf("modules are missing that a guest needs: %s", strings.Join(missing, ", "))
	}
	return chosen, nil
}

// needsMax bounds chains of dependencies; real ones have about five.
const needsMax = 32

// add adds a module and its dependencies.
func (k *kernel) add(name string, to map[string]guest.Module, depth int) error {
	if _, ok := to[name]; ok || k.builtIn[name] {
		return nil
	}
	m, ok := k.modules[name]
	if !ok || depth > needsMax {
		return fmt.Errorf("required module %s is missing", name)
	}
	to[name] = guest.Module{Path: "/lib/modules/" + name + ".ko", Needs: m.needs}
	for _, need := range m.needs {
		if err := k.add(need, to, depth+1); err != nil {
			return err
		}
	}
	return nil
}
