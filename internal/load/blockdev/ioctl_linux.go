package blockdev

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func ioctlUint64(fd int, request uint) (uint64, error) {
	var value uint64
	if err := ioctl(fd, request, unsafe.Pointer(&value)); err != nil {
		return 0, err
	}
	return value, nil
}

func ioctl(fd int, request uint, argument unsafe.Pointer) error {
	_, _, code := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(argument))
	if code != 0 {
		return code
	}
	return nil
}

// forgetPartitions makes the kernel reread the partition table of a disk. The kernel refuses if a partition is in use,
// which the next Check finds, and for devices that cannot have partitions.
func forgetPartitions(device medium) {
	if f, ok := device.(*os.File); ok {
		_ = ioctl(int(f.Fd()), unix.BLKRRPART, nil)
	}
}
