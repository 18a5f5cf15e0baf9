package program

import (
	"strconv"
	"syscall"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
)

// Ignores reports whether a job's ignore_error names an error.
func (s *Job) Ignores(direction uint8, class int) bool {
	lists := &s.Fio.Control.IgnoreErrors
	for _, name := range lists[min(int(direction), int(interval.Write))] {
		if name == backend.ErrorClassName(class) || name == strconv.Itoa(class) {
			return true
		}
	}
	return false
}

// Filled reports whether a write has found the end of the space that fill_device fills: no space left, or only for a part.
func (s *Job) Filled(kind backend.OpKind, class int) bool {
	return s.Fio.Control.FillDevice && kind == backend.OpWrite && (class == int(syscall.ENOSPC) || class == backend.ClassShortWrite)
}

// Tolerates reports whether failed operations of a direction are counted and passed over.
func (s *Job) Tolerates(d interval.Direction) bool {
	switch s.Fio.ContinueOnError {
	case "all", "io":
		return true
	case "read":
		return d == interval.Read
	case "write":
		return d == interval.Write
	}
	return false
}
