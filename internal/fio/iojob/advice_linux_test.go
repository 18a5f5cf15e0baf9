package iojob_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/testreq"
)

// ext4 makes a file system of its own for a test.
func ext4(t *testing.T) string {
	t.Helper()
	backing := filepath.Join(t.TempDir(), "backing")
	if err := os.WriteFile(backing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(backing, 64<<20); err != nil {
		t.Fatal(err)
	}
	device := testreq.Loop(t, backing)
	if out, err := exec.Command(testreq.Program(t, "mkfs.ext4"), "-q", device).CombinedOutput(); err != nil {
		t.Fatalf("mkfs: %v: %s", err, out)
	}
	dir := filepath.Join(t.TempDir(), "ext4")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(device, dir, "ext4", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// residentPages returns how much of a file the page cache has.
func residentPages(t *testing.T, path string, size int) (n int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	pages := make([]byte, size/os.Getpagesize())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&memory[0])), uintptr(size), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, p := range pages {
		n += int(p & 1)
	}
	return n
}

// TestAdviceReadsAheadAsInFio reads the first block of a file, after which the kernel reads ahead unless random reads were
// advised.
func TestAdviceReadsAheadAsInFio(t *testing.T) {
	const size = 8 << 20
	dir := ext4(t)
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	for options, ahead := range map[string]bool{
		"rw=read": true, "rw=randread": false, "rw=randread\nfadvise_hint=1": false, "rw=randread\nfadvise_hint=0": true,
		"rw=randread\nfadvise_hint=sequential": true, "rw=read\nfadvise_hint=random": false,
		"rw=randread\nioengine=mmap": false, "rw=randread\nioengine=mmap\nfadvise_hint=0": true,
	} {
		text := "[a]\nfilename=@/f\nbs=4k\nsize=4k\n" + options + "\n"
		text, file := parse(t, dir, text)
		check := func(who string) {
			t.Helper()
			if n := residentPages(t, path, size); n == 0 || n > 1 != ahead {
				t.Errorf("%s %q: %d pages are in memory", who, options, n)
			}
		}
		report := runJobs(t, file)
		check("bragg " + report.Rows[0].Engine)
		if testing.Short() {
			continue
		}
		if out, err := runFio(t, dir, text); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		check("fio")
	}
}
