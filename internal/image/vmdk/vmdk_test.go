package vmdk_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/braggdev/bragg/internal/image/vmdk"
	"github.com/braggdev/bragg/internal/testreq"
)

// QEMU reads the same disk from what was written: with holes, an incomplete last grain, several tables, tables without data, and
// data that does not compress.
func TestAgainstQEMU(t *testing.T) {
	t.Parallel()
	tool := testreq.Program(t, "qemu-img")
	random := make([]byte, 1<<20)
	source := rand.NewChaCha8([32]byte{7})
	_, _ = source.Read(random)
	const table = 32 << 20
	for name, c := range map[string]struct {
		size int64
		at   []int64 // of data
	}{
		"one sector":      {512, nil},
		"empty":           {table * 2, nil},
		"incomplete end":  {3<<20 + 5*512, []int64{0, 2<<20 + 512}},
		"several tables":  {4*table + 64<<10, []int64{100, table - 4096, 3*table + 7, 4*table - 512}},
		"exactly a table": {table, []int64{table - 1<<20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			raw, packed := filepath.Join(dir, "disk.raw"), filepath.Join(dir, "disk.vmdk")
			disk := make([]byte, c.size)
			for _, at := range c.at {
				copy(disk[at:], random)
			}
			if err := os.WriteFile(raw, disk, 0o600); err != nil {
				t.Fatal(err)
			}
			text := write(t, disk)
			if again := write(t, disk); !bytes.Equal(again, text) {
				t.Error("the same disk gave other bytes")
			}
			if err := os.WriteFile(packed, text, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"check", "-f", "vmdk", packed},
				{"compare", "-f", "raw", "-F", "vmdk", raw, packed},
				{"convert", "-f", "vmdk", "-O", "raw", packed, filepath.Join(dir, "back.raw")},
			} {
				if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
					t.Errorf("qemu-img %q: %v: %s", args, err, out)
				}
			}
			if back, err := os.ReadFile(filepath.Join(dir, "back.raw")); err != nil || !bytes.Equal(back, disk) {
				t.Errorf("the converted disk differs: %v", err)
			}
		})
	}
}

func write(t *testing.T, disk []byte) []byte {
	t.Helper()
	var to bytes.Buffer
	if err := vmdk.Write(&to, bytes.NewReader(disk), int64(len(disk))); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, -512, 511, 1<<40 + 512} {
		if err := vmdk.Write(&bytes.Buffer{}, bytes.NewReader(nil), size); err == nil {
			t.Errorf("%d bytes were accepted", size)
		}
	}
	if err := vmdk.Write(&bytes.Buffer{}, bytes.NewReader(make([]byte, 1024)), 1536); err == nil {
		t.Error("a disk that ends too early was accepted")
	}
	if err := vmdk.Write(full{}, bytes.NewReader(bytes.Repeat([]byte{1}, 4<<20)), 4<<20); err == nil {
		t.Error("the error of the output is lost")
	}
}

// full is an output without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }
