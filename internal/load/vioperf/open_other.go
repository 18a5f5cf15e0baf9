//go:build !linux

package vioperf

import "os"

// open makes a file; direct I/O is used on Linux only.
func open(path string, _ bool) (f *os.File, isDirect bool, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	return f, false, err
}
