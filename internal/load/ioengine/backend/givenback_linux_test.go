package backend

import (
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/testreq"
)

// opcodeCancel is IORING_OP_ASYNC_CANCEL, which nothing but this test asks for.
const opcodeCancel = 14

// An operation that the kernel gives back is handed over again until it is done: its caller sees it once, complete.
func TestGivenBackOperationsAreDone(t *testing.T) {
	r, err := newRing(4)
	if err != nil {
		testreq.Skip(t, "the kernel has no io_uring")
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[1])
	defer unix.Close(pipe[0])
	slots := make([]Slot, 2)
	slots[0] = Slot{Kind: OpRead, Size: 8, Buffer: make([]byte, 8), File: &File{Fd: pipe[0]}}
	b := &uring{ring: r, slots: slots}
	descriptors := []int32{int32(pipe[0])}
	if err := r.register(registerFiles, unsafe.Pointer(&descriptors[0]), 1); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	done := make([]Completion, 4)
	if n, err := b.Exchange([]int32{0}, done, 0); n != 0 || err != nil {
		t.Fatalf("a read of an empty pipe gave %d, %v", n, err)
	}
	for round := range 3 {
		e := r.entry()
		e.opcode, e.fd, e.address, e.userData = opcodeCancel, -1, 0, 1 // whatever has the mark 0; its own is that of the other slot
		cancelled := 0
		for deadline := time.Now().Add(time.Minute); cancelled == 0 && time.Now().Before(deadline); {
			n, err := b.Exchange(nil, done, int64(10*time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range done[:n] {
				if c.Slot == 0 {
					t.Fatalf("the read came back with %d while the pipe is empty", c.Result)
				}
				cancelled++
			}
			b.flying += n // the cancelling itself is none of its operations
		}
		if got := int(slots[0].givenBack); got != round+1 {
			t.Fatalf("given back %d times after %d cancellations", got, round+1)
		}
	}
	if _, err := unix.Write(pipe[1], []byte("complete")); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		n, err := b.Exchange(nil, done, int64(10*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			if done[0].Result != 8 || string(slots[0].Buffer) != "complete" {
				t.Errorf("the read ended with %d and %q", done[0].Result, slots[0].Buffer)
			}
			break
		}
	}
	if b.flying != 0 {
		t.Errorf("%d operations are in flight", b.flying)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}
