//go:build !linux

package machine

import "os"

func eachExtent(_ *os.File, size int64, do func(offset, length int64) error) error {
	return do(0, size)
}
