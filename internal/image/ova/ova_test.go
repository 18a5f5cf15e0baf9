package ova_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/image/ova"
	"github.com/braggdev/bragg/internal/testreq"
)

// disk is a disk with a boot sector, some data and holes.
func disk() []byte {
	d := make([]byte, 3<<20)
	d[510], d[511] = 0x55, 0xaa
	copy(d[2<<20:], bytes.Repeat([]byte("data"), 1<<16))
	return d
}

func TestConvert(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	raw := filepath.Join(dir, "guest.raw")
	save(t, raw, disk())
	var archives [][]byte
	images := []string{raw, raw}
	if tool, err := exec.LookPath("qemu-img"); err == nil {
		packed := filepath.Join(dir, "guest.qcow2")
		run(t, tool, "convert", "-c", "-f", "raw", "-O", "qcow2", raw, packed)
		images = append(images, packed)
	}
	for _, file := range images {
		path := filepath.Join(dir, "guest.ova")
		if err := ova.Convert(t.Context(), ova.Machine{Name: "A & B"}, file, path); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, text)
	}
	for i, text := range archives[1:] {
		if !bytes.Equal(text, archives[0]) {
			t.Errorf("%s gave another archive than %s", images[i+1], images[0])
		}
	}
	names, files := unpack(t, archives[0])
	if want := []string{"A & B.ovf", "A & B.mf", "A & B-disk1.vmdk"}; !slices.Equal(names, want) {
		t.Fatalf("files %q, want %q", names, want)
	}
	for _, name := range []string{names[0], names[2]} {
		if line := fmt.Sprintf("SHA256(%s)= %x\n", name, sha256.Sum256(files[name])); !strings.Contains(string(files[names[1]]), line) {
			t.Errorf("the manifest lacks %q:\n%s", line, files[names[1]])
		}
	}
	for _, part := range []string{`ovf:href="A &amp; B-disk1.vmdk"`, fmt.Sprintf(`ovf:size="%d"`, len(files[names[2]])), `ovf:capacity="3145728"`} {
		if !strings.Contains(string(files[names[0]]), part) {
			t.Errorf("the descriptor lacks %s", part)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	same(t, files[names[2]], raw)
}

// same wants QEMU to read the packed disk as it was.
func same(t *testing.T, packed []byte, raw string) {
	t.Helper()
	tool := testreq.Program(t, "qemu-img")
	path := filepath.Join(t.TempDir(), "disk.vmdk")
	save(t, path, packed)
	run(t, tool, "check", "-f", "vmdk", path)
	run(t, tool, "compare", "-f", "vmdk", "-F", "raw", path, raw)
}

func run(t *testing.T, tool string, args ...string) {
	t.Helper()
	if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v: %s", tool, args, err, out)
	}
}

func save(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, archive []byte) (names []string, files map[string][]byte) {
	t.Helper()
	files = map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, files
		}
		if err == nil {
			names = append(names, h.Name)
			files[h.Name], err = io.ReadAll(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What is not a disk is refused, an interrupted call leaves nothing, and a file that was there stays until the new one is complete.
func TestRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "guest.ova")
	save(t, path, []byte("an older one"))
	text, raw := filepath.Join(dir, "text"), filepath.Join(dir, "raw")
	save(t, text, bytes.Repeat([]byte("not a disk\n"), 4096))
	save(t, raw, disk())
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("stopped by the user"))
	for _, c := range []struct {
		ctx        context.Context
		name, file string
		want       string
	}{
		{t.Context(), "guest", text, "not the raw or qcow2 image"},
		{t.Context(), "guest", filepath.Join(dir, "missing"), "no such file"},
		{t.Context(), "a/b", raw, "invalid name"},
		{stopped, "guest", raw, "stopped by the user"},
	} {
		if err := ova.Convert(c.ctx, ova.Machine{Name: c.name}, c.file, path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v, want %q", c.name, c.file, err, c.want)
		}
	}
	if left, err := os.ReadFile(path); err != nil || string(left) != "an older one" {
		t.Errorf("the older file is %q, %v", left, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 3 {
		t.Errorf("left: %v, %v", all, err)
	}
}

// Without qemu-img a qcow2 image is refused with what helps.
func TestWithoutQEMU(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	file := filepath.Join(t.TempDir(), "guest.qcow2")
	save(t, file, []byte("QFI\xfb and more"))
	var e *diag.Error
	if err := ova.Convert(t.Context(), ova.Machine{Name: "guest"}, file, file+".ova"); !errors.As(err, &e) || e.Code != "program-missing" || e.Exit != diag.ExitUnavailable {
		t.Errorf("got %v", err)
	}
}
