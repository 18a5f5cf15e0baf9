//go:build !unix

package program

import "errors"

// Lock needs Unix.
func Lock(string) (release func(), err error) { return nil, errors.ErrUnsupported }

// LockShared needs Unix.
func LockShared(string) (release func(), err error) { return nil, errors.ErrUnsupported }
