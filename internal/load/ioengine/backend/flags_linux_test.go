package backend

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/thread"
	"github.com/braggdev/bragg/internal/testreq"
)

// Where the kernel has no atomic writes the file is not opened for any, and the reason is reported.
func TestAtomicWritesThatCannotBe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, Access{Write: true, Atomic: true})
	if err == nil {
		f.Close()
	}
	if !errors.Is(err, errNotAtomic) || !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("buffered: %v", err)
	}
}

// The flag goes with every write and with no read, and a priority with the operation that has it.
func TestFlagsOfSingleOperations(t *testing.T) {
	slots := make([]Slot, 2)
	high := thread.NewPriority(1, 3)
	for i := range slots {
		slots[i] = Slot{File: &File{Atomic: flagAtomic, flags: flagNoWait}, Buffer: make([]byte, 4096), Size: 4096, Kind: OpKind(i), Direction: uint8(i)}
	}
	slots[interval.Write].Priority = high
	aio := &libaio{slots: slots, blocks: make([]aioBlock, 2)}
	ring, err := newRing(2)
	if err != nil {
		testreq.Skip(t, "this kernel has no io_uring for this process: "+err.Error())
	}
	defer ring.close()
	uring := &uring{ring: ring, slots: slots}
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
		if e := &ring.sq.entries[i]; e.opFlags != flags || e.priority != priority {
			t.Errorf("io_uring, direction %d: flags %x, priority %x", i, e.opFlags, e.priority)
		}
	}
}
