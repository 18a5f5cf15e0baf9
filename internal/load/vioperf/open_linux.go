package vioperf

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// open makes a file, for direct I/O if the file system has it; direct reports whether it does.
func open(path string, direct bool) (f *os.File, isDirect bool, err error) {
	flags := os.O_RDWR | os.O_CREATE | os.O_TRUNC
	if direct {
		f, err = os.OpenFile(path, flags|unix.O_DIRECT, 0o600)
		if err == nil || !errors.Is(err, unix.EINVAL) {
			return f, true, err
		}
	}
	f, err = os.OpenFile(path, flags, 0o600)
	return f, false, err
}
