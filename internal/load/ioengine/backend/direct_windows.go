package backend

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// directFlags open a file past the cache of the system.
const directFlags = windows.O_FILE_FLAG_NO_BUFFERING

// storageInfo is FILE_STORAGE_INFO of winbase.h.
type storageInfo struct {
	logicalSector, physicalForAtomicity, physicalForPerformance, effectiveForAtomicity uint32
	flags, offsetForSector, offsetForPartition                                         uint32
}

// goDirect tells what offsets, sizes and buffers must be a multiple of. Where the system does not say, it is the largest
// sector that disks have.
func goDirect(f *os.File) (align int64, err error) {
	var info storageInfo
	err = windows.GetFileInformationByHandleEx(windows.Handle(f.Fd()), windows.FileStorageInfo, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil || info.logicalSector == 0 {
		return 4096, nil
	}
	return int64(info.logicalSector), nil
}
