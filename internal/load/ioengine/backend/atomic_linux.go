package backend

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const flagAtomic = 0x40 // RWF_ATOMIC, since Linux 6.11

var errNotAtomic = errors.New("the kernel, the file system or the device has no atomic writes")

// makeAtomic makes all writes to a file atomic, or says why they cannot be.
func (f *File) makeAtomic() error {
	var stx unix.Statx_t
	if err := unix.Statx(f.Fd, "", unix.AT_EMPTY_PATH, unix.STATX_WRITE_ATOMIC, &stx); err != nil {
		return fmt.Errorf("atomic=1: %w", err)
	}
	if stx.Mask&unix.STATX_WRITE_ATOMIC == 0 || stx.Atomic_write_unit_max == 0 || !f.Direct {
		return fmt.Errorf("atomic=1: %w: %w", errNotAtomic, unix.EOPNOTSUPP)
	}
	f.Atomic = flagAtomic
	f.Limits = atomicLimits{int64(stx.Atomic_write_unit_min), int64(stx.Atomic_write_unit_max)}
	return nil
}
