package blockdev

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/testreq"
)

// A file with a hole, reserved space, data that is not flushed yet, and nothing behind its end.
func TestReadWarning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const m = 1 << 20
	if err := unix.Fallocate(int(f.Fd()), 0, 0, 4*m); err != nil {
		testreq.Skip(t, "the file system reserves nothing: "+err.Error())
	}
	if err := f.Truncate(8 * m); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, m), m); err != nil { // zeros that were written are data
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("data"), 6*m); err != nil {
		t.Fatal(err)
	}
	// SEEK_HOLE takes reserved space for a hole on many file systems, and not on all.
	reserved, err := reservedIn(int(f.Fd()), extent.Extent{Offset: 0, Length: 8 * m})
	if err != nil || extent.Common(reserved, []extent.Extent{{Offset: 0, Length: 8 * m}}) != 3*m {
		t.Errorf("reserved %v, %v", reserved, err)
	}
	tests := []struct {
		title   string
		extents []extent.Extent
		want    int64
	}{
		{"all", []extent.Extent{{Offset: 0, Length: 8 * m}}, 7*m - 4096},
		{"written", []extent.Extent{{Offset: m, Length: m}}, 0},
		{"reserved", []extent.Extent{{Offset: 2 * m, Length: m}}, m},
		{"hole", []extent.Extent{{Offset: 4 * m, Length: m}}, m},
		{"behind the end", []extent.Extent{{Offset: 7 * m, Length: 3 * m}}, 3 * m},
		{"all of it behind the end", []extent.Extent{{Offset: 20 * m, Length: m}}, m},
		{"the same twice", []extent.Extent{{Offset: 2 * m, Length: m}, {Offset: 2 * m, Length: m}}, m},
		{"across a border", []extent.Extent{{Offset: 2*m - 8192, Length: 16384}}, 8192},
		{"nothing", nil, 0},
		{"without length", []extent.Extent{{Offset: 0, Length: 0}}, 0},
	}
	for _, test := range tests {
		if got, err := ReadWarning(f, test.extents); err != nil || got != test.want {
			t.Errorf("%s: %d, %v, want %d", test.title, got, err, test.want)
		}
	}
}

// Where a file system knows nothing of holes or extents, all counts as written or the holes are still found.
func TestReadWarningElsewhere(t *testing.T) {
	for _, folder := range []string{"/dev/shm", os.TempDir()} {
		f, err := os.CreateTemp(folder, "bragg-unwritten")
		if err != nil {
			continue
		}
		os.Remove(f.Name())
		f.Truncate(1 << 20)
		f.WriteAt(make([]byte, 65536), 0)
		if got, err := ReadWarning(f, []extent.Extent{{Offset: 0, Length: 1 << 20}}); err != nil || got != 1<<20-65536 {
			t.Errorf("%s: %d, %v", folder, got, err)
		}
		f.Close()
	}
}

// A loop device is examined through its file, from its offset on, also after a discard; another device is not.
func TestReadWarningOfADevice(t *testing.T) {
	r := newRig(t)
	path := r.file(64 * mib)
	device := r.loopOn(path, "--offset", fmt.Sprint(8*mib))
	r.fill(device, 4*mib, strings.Repeat("data", int(mib)))
	look := func(path string, want int64) {
		t.Helper()
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got, err := ReadWarning(f, []extent.Extent{{Offset: 0, Length: 32 * mib}}); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", path, got, err, want)
		}
	}
	look(device, 28*mib)
	r.run("blkdiscard", "--offset", fmt.Sprint(4*mib), "--length", fmt.Sprint(2*mib), device)
	look(device, 30*mib)
	look(r.zram(32*mib), 0)
}

// Many extents need more than one answer of the kernel.
func TestReadWarningOfManyExtents(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const pieces, each = 300, 256 << 10 // smaller ones ext4 fills with zeros
	all := []extent.Extent{{Offset: 0, Length: pieces * each}}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, pieces*each); err != nil {
		testreq.Skip(t, "the file system reserves nothing: "+err.Error())
	}
	for i := range int64(pieces) {
		if _, err := f.WriteAt(make([]byte, 4096), i*each); err != nil {
			t.Fatal(err)
		}
	}
	const want = pieces * (each - 4096)
	if got, err := ReadWarning(f, all); err != nil || got != want {
		t.Errorf("%d, %v, want %d", got, err, want)
	}
	if reserved, err := reservedIn(int(f.Fd()), all[0]); err != nil || extent.Common(reserved, all) != want {
		t.Errorf("%d extents reserved, %v", len(reserved), err)
	}
}
