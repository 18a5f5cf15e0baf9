package testreq

import (
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
)

// Kernel is a kernel for guests of tests.
type Kernel struct {
	Image   string
	Modules map[string]string // paths by name; what is not among them is built in
}

// UnpackKernel unpacks the package of KernelPackage for the time of the test.
func UnpackKernel(t testing.TB) Kernel {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command(Program(t, "dpkg-deb"), "-x", KernelPackage(t), dir).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
	images, err := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
	if err != nil || len(images) != 1 {
		t.Fatal(images, err)
	}
	k := Kernel{Image: images[0], Modules: map[string]string{}}
	err = filepath.WalkDir(filepath.Join(dir, "lib", "modules"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name, ok := strings.CutSuffix(e.Name(), ".ko"); ok {
			k.Modules[moduleName(name)] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Order returns modules in the order in which they can be loaded, each behind those that it needs, and without what is
// built in.
func (k Kernel) Order(t testing.TB, names ...string) []string {
	t.Helper()
	var order []string
	var add func(name string)
	add = func(name string) {
		path, ok := k.Modules[name]
		if !ok || slices.Contains(order, name) {
			return
		}
		for _, needed := range needs(t, path) {
			add(needed)
		}
		order = append(order, name)
	}
	for _, name := range names {
		add(name)
	}
	return order
}

// needs reads from a module which others it needs.
func needs(t testing.TB, module string) (names []string) {
	t.Helper()
	file, err := elf.Open(module)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Section(".modinfo").Data()
	if err != nil {
		t.Fatal(err)
	}
	for entry := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(entry, "depends="); ok {
			for name := range strings.SplitSeq(list, ",") {
				names = append(names, moduleName(name))
			}
		}
	}
	return names
}

// moduleName writes names of files and names of modules in one way.
func moduleName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// WriteInitramfs writes the first file system of a guest: files of this machine and texts, all of them executable, by their
// paths there, and folders for what its first process mounts.
func WriteInitramfs(t testing.TB, path string, files, texts map[string]string) {
	t.Helper()
	contents := map[string][]byte{}
	for name, text := range texts {
		contents[name] = []byte(text)
	}
	for name, from := range files {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		contents[name] = content
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writeArchive(cpio.NewWriter(out), contents), out.Close()); err != nil {
		t.Fatal(err)
	}
}

func writeArchive(w *cpio.Writer, contents map[string][]byte) (err error) {
	made := map[string]bool{".": true}
	var folder func(name string)
	folder = func(name string) {
		if !made[name] {
			made[name] = true
			folder(filepath.Dir(name))
			err = errors.Join(err, w.WriteHeader(&cpio.Header{Name: name, Mode: cpio.TypeDir | 0o755, Links: 2}))
		}
	}
	for _, name := range []string{"proc", "sys", "dev", "tmp"} {
		folder(name)
	}
	for name, content := range contents {
		folder(filepath.Dir(name))
		err = errors.Join(err, w.WriteHeader(&cpio.Header{Name: name, Mode: cpio.TypeReg | 0o755, Size: int64(len(content)), Links: 1}))
		_, failed := w.Write(content)
		err = errors.Join(err, failed)
	}
	return errors.Join(err, w.Close())
}
