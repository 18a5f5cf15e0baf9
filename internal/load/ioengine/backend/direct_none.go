//go:build !linux && !darwin && !windows

package backend

import (
	"errors"
	"os"
)

const directFlags = 0

func goDirect(*os.File) (align int64, err error) { return 1, errors.ErrUnsupported }
