//go:build !linux

package iojob

import "os"

func reserve(f *os.File, have, need int64) error {
	if need <= have {
		return nil
	}
	return f.Truncate(need)
}
