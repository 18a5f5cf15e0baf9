//go:build !unix

package mlperf

import "errors"

// lock needs Unix.
func lock(string) (release func(), err error) { return nil, errors.ErrUnsupported }
