package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/testreq"
)

// allocated returns the bytes that a file really takes.
func allocated(t testing.TB, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// A copy has the same bytes, and holes where the source has holes.
func TestCopyIsExactAndSparse(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		source, copied := filepath.Join(dir, fmt.Sprint("s", n)), filepath.Join(dir, fmt.Sprint("c", n))
		defer os.Remove(source)
		defer os.Remove(copied)
		size := rapid.Int64Range(1, 4<<20).Draw(t, "size")
		if err := makeSparse(source, size); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(source, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for range rapid.IntRange(0, 6).Draw(t, "writes") {
			offset := rapid.Int64Range(0, size-1).Draw(t, "offset")
			data := bytes.Repeat([]byte{byte(n)}, int(min(size-offset, rapid.Int64Range(1, 20000).Draw(t, "length"))))
			if _, err := f.WriteAt(data, offset); err != nil {
				t.Fatal(err)
			}
		}
		larger := size + rapid.Int64Range(0, 1<<20).Draw(t, "larger")
		if err := copyDisk(context.Background(), copied, source, larger); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(copied)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, append(want, make([]byte, larger-size)...)) {
			t.Fatal("the copy differs")
		}
	})
}

func TestCopyKeepsHoles(t *testing.T) {
	dir := t.TempDir()
	source, copied := filepath.Join(dir, "source"), filepath.Join(dir, "copied")
	const size = 1 << 30
	if err := makeSparse(source, size); err != nil {
		t.Fatal(err)
	}
	if allocated(t, source) > 1<<20 {
		testreq.Skip(t, "the file system of the temporary directory has no holes")
	}
	f, err := os.OpenFile(source, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 4096), size/2); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := copyDisk(t.Context(), copied, source, size); err != nil {
		t.Fatal(err)
	}
	if got := allocated(t, copied); got > 1<<20 {
		t.Errorf("a copy of 4 KiB of data takes %d bytes", got)
	}
}

func TestCopyStopsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	if err := os.WriteFile(source, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, err := os.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(dir, "copied"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := copySparse(ctx, out, in); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCopyRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	secret, link := filepath.Join(dir, "secret"), filepath.Join(dir, "link")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	if err := copyDisk(t.Context(), filepath.Join(dir, "copied"), link, 6); err == nil {
		t.Error("a link was followed")
	}
}

// mount mounts a file system for one test.
func mount(t *testing.T, args ...string) string {
	t.Helper()
	testreq.Root(t)
	dir := t.TempDir()
	if out, err := exec.Command(testreq.Program(t, "mount"), append(args, dir)...).CombinedOutput(); err != nil {
		testreq.Skip(t, fmt.Sprintf("mount %v: %v: %s", args, err, out))
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func openIn(t *testing.T, dir string) *Target {
	t.Helper()
	l, err := Open(t.Context(), target.Config{NodeCount: 1}, target.OpenOptions{Dir: dir, AgentCommand: []string{"false"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func testTag() target.Tag {
	return target.Tag{Controller: "c", Run: "r", Nonce: "0123456789abcdef0123456789abcdef"}
}

func testSpec(name string, sizeBytes int64) target.VMSpec {
	return target.VMSpec{Name: name, Group: "G", NodeID: "node-1", DiskBytes: []int64{sizeBytes}}
}

// A full disk is an error that says so, and what was half done is gone.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := mount(t, "-t", "tmpfs", "-o", "size=16m", "tmpfs")
	l := openIn(t, dir)
	source, err := l.Create(t.Context(), testTag(), []target.VMSpec{testSpec("source", 10<<20)})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source[0].Disks[0].Path, bytes.Repeat([]byte{1}, 10<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	specs := []target.VMSpec{testSpec("a", 10<<20), testSpec("b", 10<<20)}
	if _, err := l.CloneVM(t.Context(), testTag(), source[0], specs, false); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("clone: got %v", err)
	}
	if err := l.SnapshotVMs(t.Context(), testTag(), source, "s"); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("snapshot: got %v", err)
	}
	_ = os.Remove(filepath.Join(dir, source[0].ID, "snapshots")) // the empty folder that holds all snapshots may stay
	if after := files(t, dir); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("left behind: %q, before %q", after, before)
	}
	// Not even a VM without data fits without a free block for its files.
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 16<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("fill: %v", err)
	}
	if _, err := l.Create(t.Context(), testTag(), []target.VMSpec{testSpec("c", 1<<20)}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("create: got %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	if after := files(t, dir); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("left behind: %q, before %q", after, before)
	}
	if err := l.Delete(t.Context(), testTag(), source); err != nil {
		t.Error(err)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Where the file system can share blocks, clones and snapshots cost next to nothing.
func TestClonesShareBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	testreq.Root(t)
	image := filepath.Join(t.TempDir(), "image")
	if err := makeSparse(image, 320<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(testreq.Program(t, "mkfs.xfs"), "-q", image).CombinedOutput(); err != nil {
		testreq.Skip(t, fmt.Sprintf("mkfs.xfs: %v: %s", err, out))
	}
	dir := mount(t, "-o", "loop", image)
	if !canShareBlocks(dir) {
		testreq.Skip(t, "this mkfs.xfs makes no file system with reflink")
	}
	l := openIn(t, dir)
	const size = 32 << 20
	source, err := l.Create(t.Context(), testTag(), []target.VMSpec{testSpec("source", size)})
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte{1}, size)
	if err := os.WriteFile(source[0].Disks[0].Path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	before := free(t, l)
	var specs []target.VMSpec
	for i := range 20 { // 640 MiB in a file system of 320
		specs = append(specs, testSpec(fmt.Sprint("clone", i), size))
	}
	clones, err := l.CloneVM(t.Context(), testTag(), source[0], specs, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SnapshotVMs(t.Context(), testTag(), source, "s"); err != nil {
		t.Fatal(err)
	}
	if used := before - free(t, l); used > size {
		t.Errorf("20 clones and a snapshot took %d bytes", used)
	}
	got, err := os.ReadFile(clones[19].Disks[0].Path)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("a clone differs from its source, %v", err)
	}
}

func free(t *testing.T, l *Target) int64 {
	t.Helper()
	unix.Sync()
	inventory, err := l.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return inventory.FreeBytes
}
