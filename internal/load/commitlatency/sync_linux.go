package commitlatency

import (
	"os"

	"golang.org/x/sys/unix"
)

// fdatasync is what PostgreSQL calls by default.
func fdatasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
