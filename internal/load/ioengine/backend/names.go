package backend

import (
	"syscall"

	"github.com/braggdev/bragg/internal/load"
)

// NewNames returns the back end of a worker whose only lane has a job for names of files: those of devices.
func NewNames(slots []Slot, devices []load.Device, ioengine string) Backend {
	b, of := NewPsync(slots, KindNames), nameCall(ioengine)
	b.perform = func(s *Slot) int32 {
		if s.Kind != OpRead {
			return 0
		}
		if err := of(devices[s.Device].Path); err != nil {
			return resultOf(0, err)
		}
		return WholeSize
	}
	return b
}

// nameCall returns the system call that an engine times.
func nameCall(ioengine string) func(path string) error {
	switch ioengine {
	case "filecreate":
		return createFile
	case "filestat", "dirstat":
		return statFile
	case "dircreate":
		return func(path string) error { return syscall.Mkdir(path, 0o755) }
	case "dirdelete":
		return syscall.Rmdir
	}
	return syscall.Unlink
}

func createFile(path string) error {
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return syscall.Close(fd)
}
