package ioengine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/testreq"
)

// Where the kernel has no atomic writes the file is not opened for any, and the reason is told.
func TestAtomicWritesThatCannotBe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := openDevice(path, access{write: true, atomic: true})
	if err == nil {
		f.close()
	}
	if !errors.Is(err, errNotAtomic) || !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("buffered: %v", err)
	}
}

// The flag goes with every write and with no read, and a priority with the operation that has it.
func TestFlagsOfSingleOperations(t *testing.T) {
	slots := make([]slot, 2)
	high := NewPriority(1, 3)
	for i := range slots {
		slots[i] = slot{file: &file{atomic: flagAtomic, flags: flagNoWait}, buffer: make([]byte, 4096), size: 4096, kind: opKind(i), direction: uint8(i)}
	}
	slots[interval.Write].priority = high
	aio := &libaioBackend{slots: slots, blocks: make([]aioBlock, 2)}
	ring, err := newRing(2)
	if err != nil {
		testreq.Skip(t, "this kernel has no io_uring for this process: "+err.Error())
	}
	defer ring.close()
	uring := &uringBackend{ring: ring, slots: slots}
	for i := range slots {
		aio.prepare(int32(i))
		uring.prepare(int32(i))
		flags, priority, set := uint32(flagNoWait), uint16(0), uint32(0)
		if i == int(interval.Write) {
			flags, priority, set = flags|flagAtomic, uint16(high), aioPriority
		}
		if b := &aio.blocks[i]; b.flags != flags || b.priority != priority || b.set != set {
			t.Errorf("libaio, direction %d: flags %x, priority %x, %x", i, b.flags, b.priority, b.set)
		}
		if e := &ring.entries[i]; e.opFlags != flags || e.priority != priority {
			t.Errorf("io_uring, direction %d: flags %x, priority %x", i, e.opFlags, e.priority)
		}
	}
}
