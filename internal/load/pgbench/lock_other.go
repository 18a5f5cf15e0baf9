//go:build !unix

package pgbench

import "errors"

// lock needs Unix.
func lock(string) (release func(), err error) { return nil, errors.ErrUnsupported }
