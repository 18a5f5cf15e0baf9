package memory

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/unit"
)

// CPUs lists those that this process may run on.
func CPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("list CPUs: %w", err)
	}
	var list []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list, nil
}

// Pin keeps the calling goroutine on a thread of its own, and that thread on a CPU. The thread ends with the goroutine.
func Pin(cpu int) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin a thread to CPU %d: %w", cpu, err)
	}
	return nil
}

// Region is memory that the garbage collector does not know. A page exists, on the memory node of the thread, once it was written.
type Region struct {
	bytes []byte // with room to align, and a guard page: the kernel would join neighbors, and HugeBytes count those
	size  int64
}

// hugePage is the size of a huge page on amd64, and on arm64 with pages of 4 KiB.
const hugePage = 2 * unit.MiB

// Map reserves memory, aligned to a huge page. With huge, huge pages are requested; without, the kernel decides by its setting.
func Map(size int64, huge bool) (*Region, error) {
	page := int64(os.Getpagesize())
	length := (size+page-1)/page*page + hugePage + page
	all, err := unix.Mmap(-1, 0, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %s of memory: %w", unit.FormatBytes(size), err)
	}
	r := &Region{bytes: all, size: size}
	if err := unix.Mprotect(all[length-page:], unix.PROT_NONE); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the end of memory: %w", err), r.Close())
	}
	if huge {
		_ = unix.Madvise(all, unix.MADV_HUGEPAGE)
	}
	return r, nil
}

// Bytes is the memory, aligned to a huge page.
func (r *Region) Bytes() []byte {
	skip := -uintptr(unsafe.Pointer(&r.bytes[0])) % uintptr(hugePage)
	return r.bytes[skip : int64(skip)+r.size]
}

// Floats is the memory as numbers.
func (r *Region) Floats() []float64 {
	b := r.Bytes()
	return unsafe.Slice((*float64)(unsafe.Pointer(&b[0])), len(b)/8)
}

// HugeBytes is how much of it is in huge pages.
func (r *Region) HugeBytes() int64 {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0
	}
	defer f.Close()
	begin := uint64(uintptr(unsafe.Pointer(&r.bytes[0])))
	end := begin + uint64(len(r.bytes))
	var sum int64
	inside := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		first, rest, _ := strings.Cut(lines.Text(), " ")
		if low, high, ok := strings.Cut(first, "-"); ok {
			from, fromErr := strconv.ParseUint(low, 16, 64)
			to, toErr := strconv.ParseUint(high, 16, 64)
			inside = fromErr == nil && toErr == nil && from < end && to > begin
		} else if inside && first == "AnonHugePages:" {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			sum += kib * unit.KiB
		}
	}
	return sum
}

// Close gives the memory back.
func (r *Region) Close() error {
	if r == nil || r.bytes == nil {
		return nil
	}
	err := unix.Munmap(r.bytes)
	r.bytes = nil
	return err
}
