//go:build linux

package ioengine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
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

// What the kernel would answer with EINVAL is refused beforehand: sizes that are no powers of two or out of bounds, and
// places that are no multiples of their size.
func TestAtomicWritesThatDoNotFit(t *testing.T) {
	f := &file{atomic: flagAtomic, limits: atomicLimits{4096, 65536}}
	for options, want := range map[string]string{
		"rw=write bs=4k":                                            "",
		"rw=randwrite bs=64k":                                       "",
		"rw=randwrite bssplit=4k/50:16k/50 ba=16k":                  "",
		"rw=read bs=512":                                            "",
		"rw=write bs=2k":                                            "blocks of 2048",
		"rw=write bs=128k":                                          "blocks of 131072",
		"rw=randwrite bs=12k":                                       "blocks of 12288",
		"rw=randwrite bs=16k ba=4k":                                 "multiples of 4096 and not of 16384",
		"rw=write bs=16k offset=4k":                                 "begins at 4096",
		"rw=randwrite bssplit=4k/50:16k/50":                         "multiples of 4096 and not of 16384",
		"rw=write bssplit=4k/50:16k/50 ba=16k":                      "one after the other",
		"rw=randwrite bsrange=4k-16k":                               "range",
		"rw=write:4k bs=16k":                                        "a skip of 4096",
		"rw=write bs=16k zonesize=32k zoneskip=4k zonemode=strided": "begins at",
	} {
		text := "[j]\nfilename=/dev/sdb\nsize=1m\nioengine=libaio\natomic=1\n" + strings.ReplaceAll(options, " ", "\n") + "\n"
		parsed, list := fiojob.Parse("job.fio", text, fiojob.Options{})
		if list.HasErrors() {
			t.Fatal(list)
		}
		w := load.Workload{Devices: []load.Device{{Name: "/dev/sdb", SizeBytes: 1 << 30}}}
		p, err := compile(w, parsed.Jobs(), nil)
		if err != nil {
			t.Fatal(err)
		}
		job := &p.jobs[0]
		if !job.job.Direct && job.writes {
			t.Errorf("%s: atomic=1 does not imply direct access", options)
		}
		err = job.checkAtomicWrites(w.Devices[0], f)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
}

// The flag goes with every write and with no read, and a priority with the operation that has it.
func TestFlagsOfSingleOperations(t *testing.T) {
	w := &worker{slots: make([]slot, 2)}
	high := NewPriority(1, 3)
	for i := range w.slots {
		w.slots[i] = slot{file: &file{atomic: flagAtomic, flags: flagNoWait}, buffer: make([]byte, 4096), size: 4096, kind: opKind(i), direction: uint8(i)}
	}
	w.slots[interval.Write].priority = high
	aio := &libaioBackend{slots: w.slots, blocks: make([]aioBlock, 2)}
	ring, err := newRing(2)
	if err != nil {
		testreq.Skip(t, "this kernel has no io_uring for this process: "+err.Error())
	}
	defer ring.close()
	uring := &uringBackend{ring: ring, slots: w.slots}
	for i := range w.slots {
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
