package ioengine

import (
	"syscall"

	"github.com/braggdev/bragg/internal/interval"
)

// namesOnly makes of a job with one of fio's engines filecreate, filestat and filedelete, or their likes for folders, what it is: one operation for
// each of its files, counted as a read of no bytes.
func (s *jobSpec) namesOnly() {
	if s.kind != kindNames {
		return
	}
	s.reads, s.writes, s.trims, s.random, s.endless = true, false, false, false, false
	s.sizes = [interval.DirectionCount]sizes{interval.Read: {smallest: 1, largest: 1}}
}

// newNamesBackend returns the back end of a worker whose only lane has a job for names of files.
func newNamesBackend(w *worker) backend {
	b := newPsyncBackend(w.slots, kindNames)
	devices, of := w.shared.devices, nameCall(w.lanes[0].job.job.IOEngine)
	b.perform = func(s *slot) int32 {
		if s.kind != opRead {
			return 0
		}
		if err := of(devices[s.device].Path); err != nil {
			return resultOf(0, err)
		}
		return wholeSize
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
