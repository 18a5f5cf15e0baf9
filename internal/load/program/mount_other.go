//go:build !linux

package program

import (
	"errors"
	"os"
)

// mountSpace needs Linux.
type mountSpace struct{ folder, itself *os.File }

func openMountSpace(string) (*mountSpace, error) {
	return nil, errors.New("disks that are block devices are mounted on Linux only")
}

func (*mountSpace) mount(*os.File, string, FileSystem) (string, error) {
	return "", errors.ErrUnsupported
}
func (*mountSpace) unmount(string) error { return errors.ErrUnsupported }
func (*mountSpace) close()               {}
