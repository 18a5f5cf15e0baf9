package image

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/testreq"
)

// made is a kernel with every module that is wanted, each needing "base".
func made() *kernel {
	k := &kernel{
		release: "6.1-test", architecture: "amd64", image: []byte("kernel"), modules: map[string]module{}, builtIn: map[string]bool{},
	}
	for _, w := range wanted {
		k.modules[w.name] = module{text: []byte(w.name), needs: []string{"base"}, aliases: []string{"pci:" + w.name}}
	}
	k.modules["base"] = module{text: []byte("base")}
	return k
}

func TestChoose(t *testing.T) {
	t.Parallel()
	m, err := made().choose()
	if err != nil || len(m.Modules) != len(wanted)+1 || len(m.Load) != len(wanted) {
		t.Fatalf("chose %+v, %v", m, err)
	}
	if m.Modules["scsi_mod"].Parameters != "scan=sync" || m.Modules["scsi_mod"].Aliases != nil || m.Modules["vmw_pvscsi"].Aliases == nil {
		t.Errorf("chose %+v", m)
	}
	if order := m.Order(nil); order[0] != "base" || slices.Contains(order, "vmw_pvscsi") {
		t.Errorf("the order is %v", order)
	}

	k := made()
	delete(k.modules, "isofs")
	delete(k.modules, "vmxnet3")
	if _, err := k.choose(); err == nil || !strings.HasSuffix(err.Error(), ": isofs") {
		t.Errorf("got %v", err)
	}
	k.builtIn["isofs"], k.builtIn["base"] = true, true
	delete(k.modules, "base")
	if m, err := k.choose(); err != nil || slices.Contains(m.Load, "isofs") {
		t.Errorf("with isofs built in: %+v, %v", m, err)
	}
	k.builtIn["base"] = false
	if _, err := k.choose(); err == nil || !strings.Contains(err.Error(), "module base") {
		t.Errorf("got %v", err)
	}
	k.modules["base"] = module{needs: []string{"other"}}
	k.modules["other"] = module{needs: []string{"base"}}
	if _, err := k.choose(); err != nil {
		t.Errorf("a circle: %v", err)
	}
}

func TestModuleName(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"kernel/drivers/char/virtio-rng.ko": "virtio_rng ", "a.ko.xz": "a .xz", "a.ko.zst": "a .zst", "modules.order": "", ".ko": "",
	} {
		name, compression, ok := moduleName(file)
		if got := name + " " + compression; ok != (want != "") || ok && got != want {
			t.Errorf("%s: got %q, %v", file, got, ok)
		}
	}
}

func TestInitramfsIsReproducible(t *testing.T) {
	t.Parallel()
	var first []byte
	for range 3 {
		k := made()
		m, err := k.choose()
		if err != nil {
			t.Fatal(err)
		}
		text, err := writeInitramfs([]byte("agent"), m, k.modules)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = text
		}
		if !bytes.Equal(first, text) {
			t.Error("the same files give other bytes")
		}
	}
}

func TestOpenRefusesWhatWasChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() error { _, err := Open(dir); return err }
	if open() == nil {
		t.Error("an empty folder is an image")
	}
	manifest := `{"format":1,"kernel":{"name":"vmlinuz","bytes":1,"sha256":"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},` +
		`"initramfs":{"name":"initramfs","bytes":1,"sha256":"3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"}}`
	if err := store(dir, []byte("a"), []byte("b"), []byte(manifest)); err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Error(err)
	}
	for file, text := range map[string]string{KernelFile: "x", InitramfsFile: "bb", ManifestFile: `{"format":2}`} {
		if err := store(dir, []byte("a"), []byte("b"), []byte(manifest)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := open(); err == nil || diag.ExitCode(err) != diag.ExitData {
			t.Errorf("a changed %s gives %v", file, err)
		}
	}
}

// A disk that is full leaves no image that looks whole, and no litter.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	testreq.Root(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, ManifestFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store(dir, []byte("a"), make([]byte, 1<<20), []byte("{}")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	hidden, _ := filepath.Glob(filepath.Join(dir, ".*-*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != KernelFile || len(hidden) != 0 {
		t.Errorf("left %v %v, %v", left, hidden, err)
	}
}

func TestAgentsThatAreNone(t *testing.T) {
	t.Parallel()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkAgent([]byte("#!/bin/sh"), "amd64"); err == nil || !strings.Contains(err.Error(), "not a Linux program") {
		t.Errorf("a script: %v", err)
	}
	if _, err := checkAgent(self, "riscv64"); err == nil || !strings.Contains(err.Error(), "and the kernel for riscv64") {
		t.Errorf("another processor: %v", err)
	}
	if _, err := checkAgent(self, runtime.GOARCH); err == nil { // this test's program is another one
		t.Error("this test is an agent")
	}
	if _, err := readAgent(t.TempDir(), runtime.GOARCH); err == nil {
		t.Error("a folder is an agent")
	}
	if _, err := Build(Source{Package: filepath.Join(t.TempDir(), "absent.deb")}, t.TempDir()); diag.ExitCode(err) != diag.ExitData {
		t.Errorf("got %v", err)
	}
}
